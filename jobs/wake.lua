-- Wakes the snoozed jobs of one queue whose promised instant has come.
--
-- asynq's retry set has whole seconds, rounded down, and is polled; this keeps
-- milliseconds. A woken job goes to the head of the queue: its place in the
-- quota's line is held for a short while only.
--
-- KEYS[1] wake   KEYS[2] asynq retry   KEYS[3] asynq scheduled   KEYS[4] asynq pending
-- ARGV[1] prefix of asynq's task keys (same hash tag)   ARGV[2] jobs at most
-- Reply {woken, ms until the next promise or -1}. Cost O(log n) a job.
local t = redis.call('TIME')
local now = math.floor(t[1] * 1000 + t[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, tonumber(ARGV[2]))
local woken = 0
-- Popped from the right: the one due first is pushed last.
for i = #due, 1, -1 do
  local id = due[i]
  local task = ARGV[1] .. id
  if redis.call('ZREM', KEYS[2], id) == 1 or redis.call('ZREM', KEYS[3], id) == 1 then
    redis.call('RPUSH', KEYS[4], id)
    redis.call('HSET', task, 'state', 'pending', 'pending_since', string.format('%d', now * 1000000))
    redis.call('ZREM', KEYS[1], id)
    woken = woken + 1
  elseif redis.call('HGET', task, 'state') == 'active' then
    -- Its handler has not returned yet: asynq has not put it to sleep.
    redis.call('ZADD', KEYS[1], now + 20, id)
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local wait = -1
if first[2] then wait = math.max(math.ceil(tonumber(first[2]) - now), 0) end
return {woken, wait}
