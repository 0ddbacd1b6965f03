-- The line that says what a job brought, for asynqmon.
--
-- KEYS[1] asynq's task   ARGV[1] the line
-- Reply 1 written, 0 the task is gone. Cost O(1).
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'result', ARGV[1])
return 1
