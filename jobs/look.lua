-- Shows a part of one queue to the reconciler, and gives a lease to active
-- tasks that have none: without one nobody would ever look at them.
--
-- KEYS[1] active  KEYS[2] lease  KEYS[3] pending  KEYS[4] scheduled  KEYS[5] retry
-- ARGV[1] prefix of asynq's task keys (same hash tag)  ARGV[2] margin, s  ARGV[3] entries of each, at most
-- ARGV[4] a new lease's length, s
-- Reply: where ("lease": its lease has ended; "queue"), id, message ("" = none), repeated. Cost O(ARGV[3]).
local t = redis.call('TIME')
local now = tonumber(t[1])
local most = tonumber(ARGV[3])
local out = {}
local function show(where, ids)
  for _, id in ipairs(ids) do
    out[#out + 1] = where
    out[#out + 1] = id
    out[#out + 1] = redis.call('HGET', ARGV[1] .. id, 'msg') or ''
  end
end
show('lease', redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[2]), 'LIMIT', 0, most))
show('queue', redis.call('LRANGE', KEYS[3], -most, -1))
show('queue', redis.call('ZRANGE', KEYS[4], 0, most - 1))
show('queue', redis.call('ZRANGE', KEYS[5], 0, most - 1))
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, most - 1)) do
  if not redis.call('ZSCORE', KEYS[2], id) then
    redis.call('ZADD', KEYS[2], now + tonumber(ARGV[4]), id)
  end
end
return out
