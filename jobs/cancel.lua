-- A person cancels a job.
--
-- KEYS[1] record   ARGV[1] now, ms   ARGV[2] life of an ended record, ms   ARGV[3] feed   ARGV[4] queue
-- Reply {what, charge_as, sent, quota}: what is "ended", it had ended before; "running", its run is told to stop; "cancelled",
-- it has ended by this, and its next charge is charge_as/(sent+1) if it ever asked, lastly that quota. Cost O(1).
local r = redis.call('HMGET', KEYS[1], 'state', 'run', 'charge_as', 'sent', 'quota')
local s = r[1]
local what = 'cancelled'
if s == 'done' or s == 'failed' or s == 'expired' or s == 'cancelled' then
  what = 'ended'
elseif r[2] then
  redis.call('HSET', KEYS[1], 'cancel', ARGV[1])
  what = 'running'
else
  redis.call('HSET', KEYS[1], 'v', '1', 'state', 'cancelled', 'ended_ms', ARGV[1], 'feed', ARGV[3], 'queue', ARGV[4])
  redis.call('HDEL', KEYS[1], 'next_ms')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {what, r[3] or '', r[4] or '0', r[5] or ''}
