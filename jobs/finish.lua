-- A run ends: the job has ended, sleeps, or goes back.
--
-- KEYS[1] record
-- ARGV[1] run token   ARGV[2] new state   ARGV[3] life of the record, ms
-- ARGV[4] counter to raise ("attempts", "snoozes") or ""
-- ARGV[5] life of an ended record, ms
-- ARGV[6..] field, value pairs
-- Reply 1 written; 2 a person had cancelled meanwhile, so it has ended as cancelled; 0 another run has the job and
-- nothing was written. Cost O(fields).
local r = redis.call('HMGET', KEYS[1], 'run', 'ended_run', 'cancel', 'state')
if r[1] ~= ARGV[1] then
  -- A call that was sent again after a lost reply finds its own work done.
  if not r[1] and r[2] == ARGV[1] then
    return r[4] == 'cancelled' and ARGV[2] ~= 'cancelled' and 2 or 1
  end
  return 0
end
local s = ARGV[2]
if r[3] and s ~= 'done' and s ~= 'failed' and s ~= 'expired' and s ~= 'cancelled' then
  local t = redis.call('TIME')
  redis.call('HDEL', KEYS[1], 'run', 'next_ms')
  redis.call('HSET', KEYS[1], 'ended_run', ARGV[1], 'state', 'cancelled',
    'ended_ms', string.format('%d', math.floor(t[1] * 1000 + t[2] / 1000)))
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return 2
end
local gone = {'run', 'next_ms'}
if ARGV[4] ~= 'snoozes' then gone[3] = 'snoozed_ms' end
redis.call('HDEL', KEYS[1], unpack(gone))
redis.call('HSET', KEYS[1], 'ended_run', ARGV[1], 'state', s, unpack(ARGV, 6))
if ARGV[4] ~= '' then redis.call('HINCRBY', KEYS[1], ARGV[4], 1) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
