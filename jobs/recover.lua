-- Gives a dead worker's task back to the head of its queue, its tries untouched.
--
-- KEYS[1] active  KEYS[2] lease  KEYS[3] pending
-- ARGV[1] prefix of asynq's task keys (same hash tag)  ARGV[2] id  ARGV[3] margin, s
-- Reply 1 given back, 0 its worker lives or somebody was first. Cost O(active).
local now = tonumber(redis.call('TIME')[1])
local ends = redis.call('ZSCORE', KEYS[2], ARGV[2])
if not ends or tonumber(ends) > now - tonumber(ARGV[3]) then return 0 end
redis.call('ZREM', KEYS[2], ARGV[2])
if redis.call('LREM', KEYS[1], 0, ARGV[2]) == 0 then return 0 end
redis.call('RPUSH', KEYS[3], ARGV[2])
redis.call('HSET', ARGV[1] .. ARGV[2], 'state', 'pending', 'pending_since', string.format('%d', now * 1000000000))
return 1
