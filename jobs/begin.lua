-- A run begins.
--
-- KEYS[1] record
-- ARGV[1] run token   ARGV[2] feed   ARGV[3] queue   ARGV[4] tick or ""   ARGV[5] life of the record, ms
--
-- Reply {now_us, state, attempts, snoozes, sent, crashes, snoozed_since_ms, next_ms, forward, cancel}
-- state is that before this run: an ended one means that there is nothing to do, and nothing was written.
-- A run that never ended (its worker died) counts as a crash. Cost O(1).
local t = redis.call('TIME')
local now_us = string.format('%d', t[1] * 1000000 + t[2])
local now_ms = string.format('%d', math.floor((t[1] * 1000000 + t[2]) / 1000))
local r = redis.call('HMGET', KEYS[1], 'state', 'run', 'attempts', 'snoozes', 'sent', 'crashes', 'snoozed_ms', 'next_ms', 'forward', 'cancel')
local state = r[1] or ''
local crashes = tonumber(r[6] or '0')
local ended = state == 'done' or state == 'failed' or state == 'expired' or state == 'cancelled' or (r[9] and r[9] ~= '')
if not ended then
  -- The same token is a call that was sent again after a lost reply.
  if r[2] and r[2] ~= ARGV[1] then
    crashes = crashes + 1
    redis.call('HSET', KEYS[1], 'crashes', crashes)
  end
  redis.call('HSETNX', KEYS[1], 'v', '1')
  redis.call('HSET', KEYS[1], 'state', 'running', 'run', ARGV[1], 'feed', ARGV[2], 'queue', ARGV[3], 'tick', ARGV[4], 'started_ms', now_ms)
  redis.call('HDEL', KEYS[1], 'next_ms')
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return {now_us, state, r[3] or '0', r[4] or '0', r[5] or '0', tostring(crashes), r[7] or '0', r[8] or '0', r[9] or '', r[10] or ''}
