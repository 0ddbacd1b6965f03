-- seen: counters that only grow: units (granted), grants, refusals, refunds, back
-- (units refunded), blocks; and how waiters fared once they were granted: s1 … s6
-- by the refusals before, l1 … l6 by how long after their promise they came, each
-- with its sum.
-- Grants and units are the state's, all else is in meta. Cost: O(1)

local REFUSALS = {1, 2, 3, 5, 10}                            -- up to so many; s6 is more
local LATENESS = {10000, 100000, 1000000, 5000000, 30000000} -- up to so late, µs; l6 is more

-- note_turn counts a waiter that is granted.
local function note_turn(w)
  local late = math.max(0, now - w.promise)
  for name, h in pairs({s = {REFUSALS, w.refusals}, l = {LATENESS, late}}) do
    local i = 1
    while h[1][i] and h[2] > h[1][i] do
      i = i + 1
    end
    call('HINCRBY', META, name .. i, '1')
    call('HINCRBY', META, name .. 'sum', h[2])
  end
end

-- counters gives them all: grants, units, refusals, refunds, back, blocks, s1 … s6,
-- ssum, l1 … l6, lsum.
local function counters()
  local c = call('HMGET', META, 'v', 'rebased', 'refusals', 'refunds', 'back', 'blocks',
    's1', 's2', 's3', 's4', 's5', 's6', 'ssum', 'l1', 'l2', 'l3', 'l4', 'l5', 'l6', 'lsum')
  for i = 1, #c do
    c[i] = tonumber(c[i] or 0)
  end
  c[1], c[2] = n, total + c[2]
  return c
end
