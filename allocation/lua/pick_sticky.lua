-- pick, sticky: the endpoint that the key had, while it is eligible; else the
-- least used, which the key has from then on.
--
-- own      memory STRING  the key's endpoint; 0 when the caller gave no key
-- ARGV[4]  how long an unused key is remembered, milliseconds
-- cost     O(log n)

local memory = {} -- by the place of the key; false: it had none

local function pick(barred, own)
  if own == 0 then return next_use(barred) end
  if memory[own] == nil then memory[own] = call('GETEX', KEYS[own], 'PX', ARGV[4]) end
  local had = memory[own]
  if had and not (barred and barred(had)) then
    if use(had) then return had end
  end
  local id = next_use(barred)
  if id then
    memory[own] = id
    call('SET', KEYS[own], id, 'PX', ARGV[4])
  end
  return id
end

local function settle() end
