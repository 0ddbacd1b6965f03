-- import: adds endpoints to a pool. Put after clock and membership.
--
-- KEYS[1..5]  as in membership.lua; of ENDPOINTS also v:ID verdict, x:ID exits,
--             o:ID digests of the lists that it came from (none: it came by hand, and stays when lists change)
-- KEYS[6]     held ZSET    out until something else ends that: 1 auth_failed, 2 disabled, 3 candidate
-- KEYS[7]     gone ZSET    removed endpoints whose counts are kept
-- KEYS[8]     checks ZSET  those to be checked by the instant of the last check, microseconds: 0 a candidate
--                          that had none, 1 another that had none
-- KEYS[9]     names ZSET   all endpoints, with score 0: for pages in the order of IDs
-- KEYS[10]    source ZSET  of a list that is followed: its endpoints by the reading that saw them last;
--                          "*" the readings begun, "!" the last one that was gone through
-- ARGV[1..3]  now, seed, start
-- ARGV[4]     "candidate": new ones wait for a check; "": they serve at once
-- ARGV[5]     digest of the list, or "" by hand
-- ARGV[6]     number of the reading, or 0
-- ARGV[7..]   id, url, id, url, …
-- reply       {added, known, renewed}; renewed are those of the known that came with new credentials;
--             "overtaken": a later reading of the list has been gone through
-- cost        O(log n) an endpoint

local HELD, GONE, CHECKS, NAMES, SOURCE = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local waits, owner, reading = ARGV[4] == 'candidate', ARGV[5], tonumber(ARGV[6])

if owner ~= '' and tonumber(call('ZSCORE', SOURCE, '!') or 0) > reading then return 'overtaken' end
return_due(16) -- so that the floor is theirs too

-- owned notes where an endpoint came from; one that ever came by hand is nobody's.
local function owned(id, new)
  if owner == '' then
    if not new then call('HDEL', ENDPOINTS, 'o:' .. id) end
    return
  end
  local lists = call('HGET', ENDPOINTS, 'o:' .. id)
  if not (new or lists) then return end
  if not lists then
    call('HSET', ENDPOINTS, 'o:' .. id, owner)
  elseif not string.find(lists, owner, 1, true) then
    call('HSET', ENDPOINTS, 'o:' .. id, lists .. ' ' .. owner)
  end
  if tonumber(call('ZSCORE', SOURCE, id) or 0) < reading then call('ZADD', SOURCE, reading, id) end
end

local function enter(id, record)
  if waits then
    record.state = 'candidate'
    call('ZADD', HELD, 3, id)
    call('ZADD', CHECKS, 0, id)
    keep(id, record)
    return
  end
  call('ZADD', CHECKS, 'NX', 1, id)
  if record.state ~= 'active' then keep(id, record) end
  admit(id)
end

local added, known, renewed = 0, 0, 0

for i = 7, #ARGV, 2 do
  local id, url = ARGV[i], ARGV[i + 1]
  local old = call('HGET', ENDPOINTS, 'u:' .. id)
  if old ~= url then call('HSET', ENDPOINTS, 'u:' .. id, url) end
  owned(id, not old)
  if not old then
    added = added + 1
    call('ZREM', GONE, id)
    call('ZADD', NAMES, 0, id)
    enter(id, health(id))
  else
    known = known + 1
    if old ~= url then
      renewed = renewed + 1
      -- New credentials are a reason to try again one whose old ones were refused.
      if call('ZSCORE', HELD, id) == '1' then
        local record = health(id)
        call('ZREM', HELD, id)
        record.state = 'probation'
        enter(id, record)
      end
    end
  end
end
return { added, known, renewed }
