-- pick, sticky: the endpoint that the key had, while it is eligible; else the
-- least used, which the key has from then on.
--
-- own      memory STRING  the key's endpoint; nil when the caller gave no key
-- ARGV[4]  how long an unused key is remembered, milliseconds
-- cost     O(log n)

local function pick(barred, memory)
  if not memory then return lowest(READY, barred) end
  local id, score = call('GET', memory), nil
  if not id or not call('ZSCORE', READY, id) or barred and barred(id) then id, score = lowest(READY, barred) end
  if id then call('SET', memory, id, 'PX', ARGV[4]) end
  return id, score
end
