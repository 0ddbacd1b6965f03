-- Takes a place in a bounded queue for one task that is about to be enqueued.
--
-- A place counts until its task is in the queue, or until it ends by itself; so places and tasks together never
-- exceed the limit, however many ask at a time.
--
-- KEYS[1] places (zset: id, end in ms)  KEYS[2] pending  KEYS[3] active  KEYS[4] scheduled  KEYS[5] retry
-- ARGV[1] prefix of asynq's task keys (same hash tag)   ARGV[2] id   ARGV[3] limit, 0 = none   ARGV[4] life of a place, ms
-- Reply {1 the place is taken or 0 the queue is full, what it holds with all places}.
-- Cost O(places whose task has come since the last call, and those that are under way).
local limit = tonumber(ARGV[3])
if limit <= 0 then return {1, 0} end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local n = redis.call('LLEN', KEYS[2]) + redis.call('LLEN', KEYS[3]) + redis.call('ZCARD', KEYS[4]) + redis.call('ZCARD', KEYS[5])
local places = 0
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if redis.call('EXISTS', ARGV[1] .. id) == 1 then
    redis.call('ZREM', KEYS[1], id)
  elseif id ~= ARGV[2] then
    places = places + 1
  end
end
if n + places >= limit then
  redis.call('ZREM', KEYS[1], ARGV[2])
  return {0, n + places}
end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[4]), ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {1, n + places + 1}
