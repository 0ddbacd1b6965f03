-- outcome: what an outcome does to an endpoint and to the target that was asked.
-- Put after clock, membership, again and lease; report and judge say when it happens.
--
-- KEYS[1..5]  as in membership.lua
-- KEYS[6]     held ZSET, as in import.lua
-- KEYS[7..9]  as in lease.lua
-- KEYS[10]    checks ZSET, as in import.lua
-- KEYS[11]    STRING of the call, as in again.lua
-- KEYS[12..16] when a target is named: target ZSET (take.lua), bad ZSET and good ZSET (endpoints by the instant
--             of their last failure or success there), strikes HASH (ID or * -> bans or pauses in a row),
--             targets ZSET (names by the end of their last ban or pause)
-- ARGV[1..3]  now, seed, start
-- ARGV[4]     number of the call
-- ARGV[5]     id
-- ARGV[6]     effect: what is to be done; report and judge have words of their own
-- ARGV[7]     why: the outcome's name, or what a check missed
-- ARGV[8..9]  base and longest quarantine, microseconds
-- ARGV[10]    at least so long out, microseconds
-- ARGV[11]    failures in a row that make a strike
-- ARGV[12]    share of endpoints failing on a target above which it is to blame
-- ARGV[13]    target's name, or ""
-- cost        O(log n); a pause also frees at most 512 endpoints that were out for that target

local HELD, CHECKS, CALL = KEYS[6], KEYS[10], KEYS[11]
local TARGET, BAD, GOOD, STRIKES, TARGETS = KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local number, id, effect, why, name = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[13]
local base, longest, least, need = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local WINDOW, WITNESSES = 300000000, 512 -- how old and how many failures and successes speak of a target
local LISTED = 1000 -- targets with bans that List and Targets show

local function backoff(strikes)
  return math.max(math.min(base * 2 ^ (strikes - 1), longest), least)
end

-- last makes a target's keys outlive what they hold.
local function last(key, us)
  local ms = math.ceil(us / 1000)
  if call('PTTL', key) < ms then call('PEXPIRE', key, ms) end
end

-- close notes the end of a ban or a pause, and that the target has one.
local function close(member, ends)
  call('ZREMRANGEBYSCORE', TARGET, '-inf', exact(now()))
  call('ZADD', TARGET, exact(ends), member)
  last(TARGET, ends - now())
  last(STRIKES, ends - now() + 2 * longest)
  call('ZREMRANGEBYSCORE', TARGETS, '-inf', exact(now()))
  local known = tonumber(call('ZSCORE', TARGETS, name) or 0)
  call('ZADD', TARGETS, exact(math.max(known, ends)), name)
  call('ZREMRANGEBYRANK', TARGETS, 0, -LISTED - 1)
  last(TARGETS, ends - now())
end

local function witness(key, other)
  call('ZADD', key, exact(now()), id)
  call('ZREM', other, id)
  call('ZREMRANGEBYRANK', key, 0, -WITNESSES - 1)
  last(key, WINDOW)
end

-- blamed tells whether a target fails for too many endpoints to be their fault:
-- for more than the share, and for enough of them to judge by.
local function blamed()
  for _, key in ipairs({ BAD, GOOD }) do
    call('ZREMRANGEBYSCORE', key, '-inf', exact(now() - WINDOW))
  end
  local bad, good = call('ZCARD', BAD), call('ZCARD', GOOD)
  local all = call('ZCARD', READY) + call('ZCARD', PARKED) + call('ZCOUNT', HELD, 1, 2)
  local enough = math.max(2, math.min(5, math.ceil(all / 2)))
  return bad >= enough and bad > tonumber(ARGV[12]) * (bad + good)
end

-- forgive takes one from a count of strikes that is there.
local function forgive(field)
  local n = tonumber(call('HGET', STRIKES, field) or nil)
  if not n then return end
  if n > 1 then call('HSET', STRIKES, field, n - 1) else call('HDEL', STRIKES, field) end
end

-- pause closes a target for the whole pool and takes back what its failures did to endpoints.
local function pause()
  local ends = now() + backoff(call('HINCRBY', STRIKES, '*', 1))
  for _, other in ipairs(call('ZRANGE', BAD, 0, -1)) do
    local record = health(other)
    forgive(other)
    if record.target == name then
      record.fails = 0
      record.target, record.why = nil, nil
      if record.state == 'quarantined' then
        record.strikes = math.max(record.strikes - 1, 0)
        unpark(other, record, record.was)
      else
        keep(other, record)
      end
    end
  end
  call('DEL', BAD, GOOD, TARGET)
  close('*', ends)
end

local function serves(record)
  return record.state == 'active' or record.state == 'probation'
end

-- refuse_login: our credentials are of no use there until a person changes that.
local function refuse_login(record)
  if record.state == 'disabled' then return end
  leave(id)
  call('ZREM', PARKED, id)
  call('ZREM', CHECKS, id)
  call('ZADD', HELD, 1, id)
  record.state, record.why, record.since = 'auth_failed', why, exact(now())
  record.target, record.ends, record.was = nil, nil, nil
  keep(id, record)
end

-- clear: a success takes one strike back. Only a serving endpoint is cleared: a
-- late success does not end a quarantine.
local function clear(record)
  if name ~= '' then
    witness(GOOD, BAD)
    if call('EXISTS', STRIKES) == 1 then
      forgive('*')
      forgive(id)
      call('HDEL', STRIKES, 'fails ' .. id)
    end
  end
  if serves(record) and (record.state == 'probation' or record.strikes > 0 or record.fails > 0) then
    record.state = 'active'
    record.strikes = math.max(record.strikes - 1, 0)
    record.fails = 0
    record.why, record.target, record.since = nil, nil, nil
    keep(id, record)
  end
end

-- excused tells whether a failure is the target's: it is paused, or is by this
-- failure (the answer is then "blamed"). One that cannot reach the endpoint says
-- nothing of the target.
local function excused()
  if name == '' or why == 'connect' then return nil end
  local paused = tonumber(call('ZSCORE', TARGET, '*') or nil)
  if paused and paused > now() then return 'ok' end
  witness(BAD, GOOD)
  if not blamed() then return nil end
  pause()
  return 'blamed'
end

-- bar bans an endpoint from the target.
local function bar()
  local known = call('ZSCORE', TARGET, id)
  if known and tonumber(known) > now() then return end
  local fails = call('HINCRBY', STRIKES, 'fails ' .. id, 1)
  last(STRIKES, 2 * longest)
  if fails < need then return end
  call('HDEL', STRIKES, 'fails ' .. id)
  close(id, now() + backoff(call('HINCRBY', STRIKES, id, 1)))
end

-- strike. Failures of one outage come together: only the first of them counts.
local function strike(record)
  if not serves(record) then return end
  record.fails = record.fails + 1
  record.why, record.since = why, exact(now())
  record.target = name ~= '' and why ~= 'connect' and name or nil
  if record.fails < need then
    keep(id, record)
    return
  end
  record.fails = 0
  record.strikes = record.strikes + 1
  record.was = record.state
  park(id, record, now() + backoff(record.strikes))
end
