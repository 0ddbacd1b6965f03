-- import: adds endpoints to a pool. Put after clock and membership.
--
-- KEYS[1..5]  as in membership.lua
-- KEYS[6]     held ZSET  out until a person acts: 1 auth_failed, 2 disabled
-- KEYS[7]     gone ZSET  removed endpoints whose counts are kept
-- ARGV[1..3]  now, seed, start
-- ARGV[4..]   id, url, id, url, …
-- reply       {added, known, renewed}; renewed are those of the known that came with new credentials
-- cost        O(log n) an endpoint

local HELD, GONE = KEYS[6], KEYS[7]
return_due(16) -- so that the floor is theirs too

local added, known, renewed = 0, 0, 0

for i = 4, #ARGV, 2 do
  local id, url = ARGV[i], ARGV[i + 1]
  local old = call('HGET', ENDPOINTS, 'u:' .. id)
  if old ~= url then call('HSET', ENDPOINTS, 'u:' .. id, url) end
  if not old then
    added = added + 1
    call('ZREM', GONE, id)
    admit(id)
  else
    known = known + 1
    if old ~= url then
      renewed = renewed + 1
      -- New credentials are a reason to try again one whose old ones were refused.
      if call('ZSCORE', HELD, id) == '1' then
        local record = health(id)
        call('ZREM', HELD, id)
        record.state = 'probation'
        keep(id, record)
        admit(id)
      end
    end
  end
end
return { added, known, renewed }
