-- A process says that it lives, and who it is. Those that are gone are dropped.
-- KEYS[1] live (ZSET), KEYS[2] about (HASH)
-- ARGV[1] process, ARGV[2] who it is (JSON), "" when it leaves; ARGV[3] after how many ms of silence one is gone; ARGV[4] processes at most
-- Reply 1. Cost O(log n), and O(1) for each that is dropped.
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if ARGV[2] == "" then
  redis.call("ZREM", KEYS[1], ARGV[1])
  redis.call("HDEL", KEYS[2], ARGV[1])
else
  redis.call("ZADD", KEYS[1], now, ARGV[1])
  redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
end
local gone = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now - ARGV[3])
local over = redis.call("ZCARD", KEYS[1]) - #gone - tonumber(ARGV[4])
if over > 0 then
  gone = redis.call("ZRANGE", KEYS[1], 0, #gone + over - 1)
end
for _, process in ipairs(gone) do
  redis.call("ZREM", KEYS[1], process)
  redis.call("HDEL", KEYS[2], process)
end
return 1
