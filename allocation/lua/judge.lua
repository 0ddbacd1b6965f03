-- judge: what a check found. Put after outcome; the target is the judge itself,
-- so that one that fails for all is to blame, and not the pool.
--
-- KEYS, ARGV[1..13]  as in outcome.lua; effect:
--             pass    it works, and is what the pool requires
--             unfit   it works, and is not
--             strike  it does not work
--             auth    it refused our credentials
-- ARGV[14]    the verdict, JSON: kept as v:ID
-- ARGV[15]    address that the judge saw, or ""
-- reply       "ok" or "unknown" (no such endpoint)
-- cost        as in outcome.lua

local EXITS = 16 -- addresses that are kept of an endpoint, the latest

-- exit notes an address and how often and when it was seen.
local function exit(addr)
  local list = cjson.decode(call('HGET', ENDPOINTS, 'x:' .. id) or '[]')
  local at, this, oldest = exact(now()), nil, 1
  for i, e in ipairs(list) do
    if e.addr == addr then this = e end
    if tonumber(e.last) < tonumber(list[oldest].last) then oldest = i end
  end
  if not this then
    this = { addr = addr, first = at, seen = 0 }
    list[#list < EXITS and #list + 1 or oldest] = this
  end
  this.last, this.seen = at, this.seen + 1
  call('HSET', ENDPOINTS, 'x:' .. id, cjson.encode(list))
end

return once(CALL, number, function()
  if call('HEXISTS', ENDPOINTS, 'u:' .. id) == 0 then return 'unknown' end
  return_due(16)
  call('HSET', ENDPOINTS, 'v:' .. id, ARGV[14])
  if ARGV[15] ~= '' then exit(ARGV[15]) end
  local record = health(id)
  if record.state == 'auth_failed' or record.state == 'disabled' then return 'ok' end
  call('ZADD', CHECKS, exact(now()), id)
  if effect == 'auth' then
    refuse_login(record)
    return 'ok'
  end
  if effect ~= 'strike' then witness(GOOD, BAD) end
  if record.state == 'candidate' then
    if effect == 'pass' then
      enlist(id, record)
    else
      record.why, record.since = why, exact(now())
      keep(id, record)
    end
  elseif effect == 'pass' then
    clear(record)
  elseif effect == 'unfit' then
    dismiss(id, record, why)
  elseif serves(record) and not excused() then
    strike(health(id))
  end
  return 'ok'
end)
