-- series: a quota's past day. Counters only grow: grants and units in the state,
-- refusals and back (units refunded) in meta. The series is what they were when a
-- quarter of an hour began in which something was counted: so it is written once a
-- quarter, and a quarter's own count is the difference to what is written next.
-- Cost: O(quarters kept), once a quarter.

local SERIES = KEYS[11]
local SLOT = 900000000        -- a quarter of an hour, µs
local SLOTS = 96              -- kept besides the present one
local SERIES_TTL = '90000000' -- 25 hours, ms

-- begin_slot is called before the first change of a counter is written in a new
-- quarter; grants and units as they were. rebased is what rebase took off the totals.
local function begin_slot(grants, units)
  local slot = math.floor(now / SLOT)
  turns = (slot + 1) * SLOT
  local c = call('HMGET', META, 'refusals', 'back', 'rebased')
  call('HSET', SERIES, slot, format('%.0f %.0f %s %s', grants, units + tonumber(c[3] or 0), c[1] or '0', c[2] or '0'))
  local past = {}
  for _, s in ipairs(call('HKEYS', SERIES)) do
    if tonumber(s) < slot - SLOTS then
      past[#past + 1] = s
    end
  end
  if #past > 0 then
    call('HDEL', SERIES, unpack(past))
  end
  call('PEXPIRE', SERIES, SERIES_TTL)
end
