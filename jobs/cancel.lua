-- A person cancels a job.
--
-- KEYS[1] record   ARGV[1] now, ms   ARGV[2] life of an ended record, ms   ARGV[3] feed   ARGV[4] queue
-- Reply: "ended" it had ended before; "running" its run is told to stop; "cancelled" it has ended by this. Cost O(1).
local r = redis.call('HMGET', KEYS[1], 'state', 'run')
local s = r[1]
if s == 'done' or s == 'failed' or s == 'expired' or s == 'cancelled' then return 'ended' end
if r[2] then
  redis.call('HSET', KEYS[1], 'cancel', ARGV[1])
  return 'running'
end
redis.call('HSET', KEYS[1], 'v', '1', 'state', 'cancelled', 'ended_ms', ARGV[1], 'feed', ARGV[3], 'queue', ARGV[4])
redis.call('HDEL', KEYS[1], 'next_ms')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'cancelled'
