-- A request is about to go out: from here its charge is spent.
--
-- KEYS[1] record   ARGV[1] run token   ARGV[2] number of the request (1 = the job's first)
-- Reply: now in µs; "stale" when another run has the job; "cancelled" when a person has. Cost O(1).
local r = redis.call('HMGET', KEYS[1], 'run', 'cancel')
if r[1] ~= ARGV[1] then return 'stale' end
if r[2] then return 'cancelled' end
redis.call('HSET', KEYS[1], 'sent', ARGV[2])
local t = redis.call('TIME')
return string.format('%d', t[1] * 1000000 + t[2])
