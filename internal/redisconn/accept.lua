-- A person accepts this server as it is: the alarm goes, and processes whose marks it lacks go on.
-- KEYS[1] the alarm, KEYS[2] the last acceptance. ARGV[1] now by the caller's clock, µs
-- Reply 1 when there was an alarm, else 0. Cost O(1).
local alarm = redis.call("DEL", KEYS[1])
local last = tonumber(redis.call("GET", KEYS[2]) or "0")
redis.call("SET", KEYS[2], string.format("%.0f", math.max(tonumber(ARGV[1]), last + 1)))
return alarm
