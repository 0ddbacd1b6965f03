-- candidates: whom to check next. Put after clock.
--
-- KEYS[1]     endpoints HASH, as in membership.lua
-- KEYS[2]     checks ZSET, as in import.lua
-- ARGV[1..2]  now, seed
-- ARGV[3..4]  first and last rank
-- reply       {id, url, count, id, url, count, …}
-- cost        O(log n + those asked for)

local out = {}
for _, id in ipairs(call('ZRANGE', KEYS[2], ARGV[3], ARGV[4])) do
  local had = call('HMGET', KEYS[1], 'u:' .. id, 'c:' .. id)
  if had[1] then
    out[#out + 1] = id
    out[#out + 1] = had[1]
    out[#out + 1] = had[2] or '0'
  else -- removed by a version that does not know this index
    call('ZREM', KEYS[2], id)
  end
end
return out
