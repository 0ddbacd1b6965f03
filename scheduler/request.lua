-- Asks all dispatchers for ticks by hand: a trigger or a backfill.
--
-- KEYS[1]  manual   KEYS[2]  the request's hash   KEYS[3]  state hash
-- ARGV[1]  now in ms, or "" for the server's clock
-- ARGV[2]  the request's ID
-- ARGV[3]  "trigger" or "backfill"
-- ARGV[4]  the schedule
-- ARGV[5], ARGV[6]  from and to in ms, both included; "" for now
-- ARGV[7]  who
-- ARGV[8]  how many requests may be open
-- ARGV[9]  ttl of the request, ARGV[10] ttl of the state, in ms
-- Reply    1, or 0: too many are open
-- Cost     O(log n)
local now_text = text(now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[8]) then
  return 0
end
local from, to = ARGV[5], ARGV[6]
if from == '' then
  from, to = now_text, now_text
end
redis.call('HSET', KEYS[2], 'v', '1', 'kind', ARGV[3], 'schedule', ARGV[4], 'from', from, 'to', to, 'by', ARGV[7], 'at', now_text, 'next', from)
redis.call('PEXPIRE', KEYS[2], ARGV[9])
redis.call('ZADD', KEYS[1], now_text, ARGV[2])
redis.call('HSET', KEYS[3], 'v', '1', 'manual', ARGV[3], 'manual_id', ARGV[2], 'manual_by', ARGV[7], 'manual_at', now_text)
if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[10]) then
  redis.call('PEXPIRE', KEYS[3], ARGV[10])
end
return 1
