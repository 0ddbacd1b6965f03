-- choose: one member of a sorted set, the lowest or any, leaving out those for
-- which barred(id) is true (barred may be nil).
--
-- cost  O(log n); with some barred, at most 1,024 more members are looked at

local PROBES, CHUNK, SCAN = 16, 64, 1024

-- first_free walks up from the lowest member to the first that is not barred.
local function first_free(set, barred)
  for from = 0, SCAN - 1, CHUNK do
    local found = call('ZRANGE', set, from, from + CHUNK - 1, 'WITHSCORES')
    for i = 1, #found, 2 do
      if not barred(found[i]) then return found[i], tonumber(found[i + 1]) end
    end
    if #found < 2 * CHUNK then return nil end
  end
  return nil
end

-- any gives a member at random and its score. When every probe hits a barred
-- one it gives the lowest that is free.
local function any(set, barred)
  local n = call('ZCARD', set)
  if n == 0 then return nil end
  for _ = 1, barred and PROBES or 1 do
    local r = dice(n)
    local found = call('ZRANGE', set, r, r, 'WITHSCORES')
    if not (barred and barred(found[1])) then return found[1], tonumber(found[2]) end
  end
  return first_free(set, barred)
end

-- lowest gives the member with the lowest score, and the score. With more than
-- 1,024 barred below the lowest free one it gives a free one at random.
local function lowest(set, barred)
  local found = call('ZRANGE', set, 0, 0, 'WITHSCORES')
  local id = found[1]
  if not id then return nil end
  if not (barred and barred(id)) then return id, tonumber(found[2]) end
  local free, score = first_free(set, barred)
  if free then return free, score end
  return any(set, barred)
end
