-- A run begins.
--
-- KEYS[1] record
-- ARGV[1] run token   ARGV[2] feed   ARGV[3] queue   ARGV[4] tick or ""   ARGV[5] life of the record, ms
-- ARGV[6] name under which a copy goes on to charge, or ""   ARGV[7] name to charge under where there is none yet
-- ARGV[8] "1": forget how the job ended before, somebody wants it anew
--
-- Reply {now_us, state, attempts, snoozes, sent, crashes, snoozed_since_ms, next_ms, forward, cancel, charge_as, ended_ms,
-- quota}: that which it asked last
-- state is that before this run: an ended one, or a forward, means that there is nothing to do, and nothing was written.
-- A run that never ended (its worker died) counts as a crash. The name to charge under carries the record's
-- birth: an ID that is used again later charges anew. Cost O(1).
local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
local now_us = string.format('%d', us)
local now_ms = string.format('%d', math.floor(us / 1000))
local function read()
  return redis.call('HMGET', KEYS[1], 'state', 'run', 'attempts', 'snoozes', 'sent', 'crashes', 'snoozed_ms', 'next_ms',
    'forward', 'cancel', 'charge_as', 'ended_ms', 'quota', 'v')
end
local function ended(r)
  local s = r[1]
  return s == 'done' or s == 'failed' or s == 'expired' or s == 'cancelled' or r[9]
end
local r = read()
if ended(r) and ARGV[8] == '1' then
  redis.call('DEL', KEYS[1])
  r = read()
end
local crashes = tonumber(r[6] or '0')
local charge_as = r[11]
if not ended(r) then
  if not charge_as then
    charge_as = ARGV[6]
    if charge_as == '' then charge_as = ARGV[7] .. '#' .. now_us end
  end
  local fields = {'state', 'running', 'run', ARGV[1], 'feed', ARGV[2], 'queue', ARGV[3], 'tick', ARGV[4],
    'started_ms', now_ms, 'charge_as', charge_as}
  local function also(field, value)
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  -- The same token is a call that was sent again after a lost reply.
  if r[2] and r[2] ~= ARGV[1] then
    crashes = crashes + 1
    also('crashes', crashes)
  end
  if not r[14] then also('v', '1') end
  redis.call('HSET', KEYS[1], unpack(fields))
  if r[8] then redis.call('HDEL', KEYS[1], 'next_ms') end
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return {now_us, r[1] or '', r[3] or '0', r[4] or '0', r[5] or '0', tostring(crashes), r[7] or '0', r[8] or '0',
  r[9] or '', r[10] or '', charge_as or '', r[12] or '0', r[13] or ''}
