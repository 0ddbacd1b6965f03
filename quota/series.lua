-- series: a quota's past day. Counters in meta only grow: units (granted), grants,
-- refusals, back (units refunded). The series is what they were when a quarter of
-- an hour began in which something was counted: so it is written once a quarter,
-- and a quarter's own count is the difference to what is written next.
-- Cost: O(quarters kept), once a quarter.

local SERIES = KEYS[12]
local SLOT = 900000000        -- a quarter of an hour, µs
local SLOTS = 96              -- kept besides the present one
local SERIES_TTL = '90000000' -- 25 hours, ms

-- begin_slot is called before the first change of a counter in a new quarter.
local function begin_slot()
  m.slot = math.floor(now / SLOT)
  local c = call('HMGET', META, 'grants', 'units', 'refusals', 'back')
  for i = 1, 4 do
    c[i] = c[i] or '0'
  end
  call('HSET', SERIES, m.slot, table.concat(c, ' '))
  call('HSET', META, 'slot', m.slot)
  local old = {}
  for _, slot in ipairs(call('HKEYS', SERIES)) do
    if tonumber(slot) < m.slot - SLOTS then
      old[#old + 1] = slot
    end
  end
  if #old > 0 then
    call('HDEL', SERIES, unpack(old))
  end
  call('PEXPIRE', SERIES, SERIES_TTL)
end
