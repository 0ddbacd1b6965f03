-- Gives a task another message. Not while it runs: asynq then writes back what it read.
--
-- KEYS[1] asynq's task
-- ARGV[1] its message as it was seen   ARGV[2] the new one
-- Reply 1 rewritten, 0 it runs or has changed meanwhile. Cost O(1).
local seen = redis.call('HMGET', KEYS[1], 'msg', 'state')
if seen[1] ~= ARGV[1] or seen[2] == 'active' then return 0 end
redis.call('HSET', KEYS[1], 'msg', ARGV[2])
return 1
