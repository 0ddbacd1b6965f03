-- index: enters endpoints that a version without these indexes brought in. Put after clock.
--
-- KEYS[1]     endpoints HASH, as in membership.lua
-- KEYS[2]     held, KEYS[3] checks, KEYS[4] names, as in import.lua
-- ARGV[1..2]  now, seed
-- ARGV[3..]   ids
-- reply       how many were entered
-- cost        O(log n) an endpoint

local entered = 0
for i = 3, #ARGV do
  local id = ARGV[i]
  if call('HEXISTS', KEYS[1], 'u:' .. id) == 1 and call('ZADD', KEYS[4], 'NX', 0, id) == 1 then
    entered = entered + 1
    local held = tonumber(call('ZSCORE', KEYS[2], id) or 0)
    if held == 0 or held == 3 then call('ZADD', KEYS[3], 'NX', 1, id) end
  end
end
return entered
