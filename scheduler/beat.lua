-- A dispatcher says that it lives, and learns who else does.
--
-- KEYS[1]  live   KEYS[2]  manual
-- ARGV[1]  now in ms, or "" for the server's clock
-- ARGV[2]  the dispatcher
-- ARGV[3]  after how many ms without a beat a dispatcher counts as gone
-- Reply    {now, open requests, dispatcher, dispatcher, ...}
-- Cost     O(d log d) for d dispatchers
local gone = tonumber(ARGV[3])
redis.call('ZADD', KEYS[1], text(now), ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now - gone))
-- After a failover the clock may have gone back: beats of a time to come say nothing.
redis.call('ZREMRANGEBYSCORE', KEYS[1], text(now + gone), '+inf')
redis.call('PEXPIRE', KEYS[1], '60000')
local reply = {now, redis.call('ZCARD', KEYS[2])}
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  reply[#reply + 1] = name
end
return reply
