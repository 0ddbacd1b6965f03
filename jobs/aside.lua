-- Sets aside a task that asynq cannot read, or an ID whose task is gone: either
-- would stop asynq's recovery of every queue of its server.
--
-- KEYS[1] active  KEYS[2] lease  KEYS[3] pending  KEYS[4] scheduled  KEYS[5] retry  KEYS[6] aside
-- ARGV[1] prefix of asynq's task keys (same hash tag)  ARGV[2] id  ARGV[3] its message as it was seen
-- ARGV[4] why  ARGV[5] entries kept  ARGV[6] life of what is set aside, s
-- Reply 1 set aside, 0 it has changed meanwhile. Cost O(pending), for a broken task only.
local task = ARGV[1] .. ARGV[2]
if (redis.call('HGET', task, 'msg') or '') ~= ARGV[3] then return 0 end
redis.call('LREM', KEYS[1], 0, ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('LREM', KEYS[3], 0, ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
redis.call('ZREM', KEYS[5], ARGV[2])
local now = redis.call('TIME')[1]
redis.call('LPUSH', KEYS[6], cjson.encode({v = 1, id = ARGV[2], why = ARGV[4], at = tonumber(now), bytes = #ARGV[3]}))
redis.call('LTRIM', KEYS[6], 0, tonumber(ARGV[5]) - 1)
if redis.call('EXISTS', task) == 1 then
  redis.call('HSET', task, 'state', 'aside')
  redis.call('EXPIRE', task, ARGV[6])
end
return 1
