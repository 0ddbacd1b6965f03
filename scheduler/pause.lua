-- Pauses a schedule, or resumes it.
--
-- KEYS[1]  state hash
-- ARGV[1]  now in ms, or "" for the server's clock
-- ARGV[2]  "pause" or "resume"
-- ARGV[3]  until when, in ms; 0 for an open end
-- ARGV[4]  who
-- ARGV[5]  ttl in ms
-- Reply    1 done; 0 there is nothing to resume, or until is past
-- Cost     O(1)
local h = redis.call('HMGET', KEYS[1], 'pause_from', 'pause_to')
local from, to = tonumber(h[1]) or 0, tonumber(h[2]) or 0
local paused = from > 0 and (to == 0 or now < to)
if ARGV[2] == 'resume' then
  if not paused then
    return 0
  end
  redis.call('HSET', KEYS[1], 'pause_to', text(now), 'resume_by', ARGV[4], 'resume_at', text(now))
  return 1
end
local wanted = tonumber(ARGV[3])
if wanted > 0 and wanted <= now then
  return 0
end
if not paused then
  from = now
end
redis.call('HSET', KEYS[1], 'v', '1', 'pause_from', text(from), 'pause_to', ARGV[3], 'pause_by', ARGV[4], 'pause_at', text(now))
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[5]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return 1
