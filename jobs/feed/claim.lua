-- Claims the one refresh that readers may have in flight.
--
-- KEYS[1] refresh   ARGV[1] job   ARGV[2] life in ms   ARGV[3] holder known to have ended, or ""
-- Reply: the job that holds the claim now. Cost O(1).
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[3] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
