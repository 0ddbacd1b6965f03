-- Moves a claimed request on, or ends it.
--
-- KEYS[1]  manual   KEYS[2]  the request's hash   KEYS[3]  state hash
-- ARGV[1]  now in ms, or "" for the server's clock
-- ARGV[2]  the request's ID
-- ARGV[3]  the dispatcher
-- ARGV[4]  next as it was   ARGV[5]  next as it is to be, or "" for the end
-- ARGV[6]  how many ms nobody need ask
-- ARGV[7]  ticks dispatched
-- Reply    1, or 0: another one has moved it
-- Cost     O(log n)
local h = redis.call('HMGET', KEYS[2], 'next', 'claim')
if h[1] ~= ARGV[4] or h[2] ~= ARGV[3] then
  return 0
end
if ARGV[7] ~= '0' then
  redis.call('HINCRBY', KEYS[3], 'by_hand', ARGV[7])
end
if ARGV[5] == '' then
  redis.call('DEL', KEYS[2])
  redis.call('ZREM', KEYS[1], ARGV[2])
else
  redis.call('HSET', KEYS[2], 'next', ARGV[5], 'claim', '-', 'claim_until', text(now + tonumber(ARGV[6])))
end
return 1
