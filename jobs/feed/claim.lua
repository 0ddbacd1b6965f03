-- Claims the one refresh that readers may have in flight.
--
-- KEYS[1] refresh   KEYS[2] head
-- ARGV[1] job   ARGV[2] life in ms   ARGV[3] holder known to have ended, or ""
-- ARGV[4] when the newest version was fetched, ms, as the reader saw it; "" where it saw none
-- Reply: the job that holds the claim now, or "": the feed was fetched since the reader looked.
-- Cost O(1).
if (redis.call('HGET', KEYS[2], 'fetched_ms') or '') ~= ARGV[4] then return '' end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[3] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
