-- fit: endpoints for whom the pool's requirement has changed. Put after clock,
-- membership and candidate.
--
-- KEYS[1..5]  as in membership.lua; KEYS[6] held, as in import.lua
-- ARGV[1..3]  now, seed, start
-- ARGV[4..]   three for each: id; the verdict that was read of it, or ""; why it is out, or "" to let it in
-- reply       how many have moved; one whose verdict is another by now is left as it is
-- cost        O(log n) an endpoint

return_due(16)

local moved = 0
for i = 4, #ARGV, 3 do
  local id, verdict, why = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local now_has = call('HMGET', ENDPOINTS, 'u:' .. id, 'v:' .. id)
  if now_has[1] and (now_has[2] or '') == verdict then
    local record = health(id)
    local out = record.state == 'candidate'
    if out and why == '' then
      enlist(id, record)
      moved = moved + 1
    elseif why ~= '' and not out and record.state ~= 'auth_failed' and record.state ~= 'disabled' then
      dismiss(id, record, why)
      moved = moved + 1
    end
  end
end
return moved
