-- A run ends: the job has ended, sleeps, or goes back.
--
-- KEYS[1] record
-- ARGV[1] run token   ARGV[2] new state   ARGV[3] life of the record, ms
-- ARGV[4] counter to raise ("attempts", "snoozes") or ""
-- ARGV[5..] field, value pairs
-- Reply 1, or 0 when another run has the job and nothing was written. Cost O(fields).
local r = redis.call('HMGET', KEYS[1], 'run', 'ended_run')
if r[1] ~= ARGV[1] then
  -- A call that was sent again after a lost reply finds its own work done.
  if not r[1] and r[2] == ARGV[1] then return 1 end
  return 0
end
redis.call('HDEL', KEYS[1], 'run', 'next_ms')
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'ended_run', ARGV[1])
if ARGV[4] ~= '' then redis.call('HINCRBY', KEYS[1], ARGV[4], 1) end
if ARGV[4] ~= 'snoozes' then redis.call('HDEL', KEYS[1], 'snoozed_ms') end
for i = 5, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
