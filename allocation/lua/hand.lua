-- hand: what a person does to one endpoint. Put after clock, membership and retire.
--
-- KEYS[1..5]  as in membership.lua; KEYS[6] held, KEYS[7] gone, KEYS[8] checks, KEYS[9] names as in import.lua
-- KEYS[10..]  restore, remove: target ZSETs (take.lua) with bans to be lifted
-- ARGV[1..3]  now, seed, start
-- ARGV[4]     id
-- ARGV[5]     quarantine, restore, disable or remove
-- ARGV[6]     quarantine: its length in microseconds
-- reply       "ok", "unknown" (no such endpoint), or "held" (it is out until something else ends that)
-- cost        O(log n)

local HELD, GONE, CHECKS, NAMES = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, verb = ARGV[4], ARGV[5]

return_due(16) -- so that the floor is theirs too

if call('HEXISTS', ENDPOINTS, 'u:' .. id) == 0 then return 'unknown' end
local record = health(id)
local held = call('ZSCORE', HELD, id)

if verb == 'quarantine' then
  if held then return 'held' end
  record.why = 'by hand'
  record.target = nil
  record.since = exact(now())
  park(id, record, now() + tonumber(ARGV[6]))
elseif verb == 'restore' then
  for i = 10, #KEYS do call('ZREM', KEYS[i], id) end
  if held or record.state == 'quarantined' then
    call('ZREM', HELD, id)
    call('ZADD', CHECKS, 'NX', 1, id)
    unpark(id, record, 'probation')
  end
elseif verb == 'disable' then
  leave(id)
  call('ZREM', PARKED, id)
  call('ZREM', CHECKS, id)
  call('ZADD', HELD, 2, id)
  record.state, record.why, record.target, record.ends = 'disabled', 'by hand', nil, nil
  record.since = exact(now())
  keep(id, record)
else
  retire(id, HELD, GONE, CHECKS, NAMES, 10)
end
return 'ok'
