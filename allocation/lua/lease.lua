-- lease: allocations in flight and their ends. Put after clock and membership.
--
-- The leases of one call are one loan: they end together, so they are written
-- together and found by one entry. The token of a lease is its loan's token, a dot and its number in it.
-- How many leases an endpoint has is its score in BUSY, and f:ID while it is not eligible.
--
-- KEYS[7]  ends   ZSET  loans by the instant of their end, microseconds
-- KEYS[8]  loans  HASH  loan -> its endpoints, each followed by a line's end; one that was released is ""
-- KEYS[9]  leases ZSET  "token endpoint", by the end of it: leases given by a version without loans
-- cost     O(log n) a lease

local ENDS, LOANS, LEASES = KEYS[7], KEYS[8], KEYS[9]

-- land takes ended leases off their endpoints' numbers; ended is how many, by endpoint.
local function land(ended)
  local ids = {}
  for id in pairs(ended) do ids[#ids + 1] = id end
  local eligible, away = {}, {}
  for i, flying in ipairs(call('ZMSCORE', BUSY, unpack(ids))) do
    local id = ids[i]
    if flying then
      eligible[#eligible + 1] = tied(math.max(math.floor(flying) - ended[id], 0) + turn())
      eligible[#eligible + 1] = id
    else
      away[#away + 1] = id
    end
  end
  if eligible[1] then call('ZADD', BUSY, 'XX', unpack(eligible)) end
  for _, id in ipairs(away) do keep_flying(id, tonumber(call('HGET', ENDPOINTS, 'f:' .. id) or 0) - ended[id]) end
end

-- lend notes the leases of this call, which end together.
local function lend(loan, ids, ends)
  call('ZADD', ENDS, ends, loan)
  call('HSET', LOANS, loan, table.concat(ids, '\n') .. '\n')
end

local function forget(loans)
  call('ZREM', ENDS, unpack(loans))
  call('HDEL', LOANS, unpack(loans))
end

-- release ends a lease; one that has ended already does nothing.
local function release(token, id)
  local loan, number = string.match(token, '^(.*)%.(%d+)$')
  if not loan then
    if call('ZREM', LEASES, token .. ' ' .. id) == 1 then land({ [id] = 1 }) end
    return
  end
  local text = call('HGET', LOANS, loan)
  if not text then return end
  local ids, left, n = {}, false, 0
  for other in string.gmatch(text, '([^\n]*)\n') do
    n = n + 1
    ids[n] = other
    left = left or other ~= '' and n ~= tonumber(number)
  end
  if ids[tonumber(number)] ~= id then return end
  if left then
    ids[tonumber(number)] = ''
    call('HSET', LOANS, loan, table.concat(ids, '\n') .. '\n')
  else
    forget({ loan })
  end
  land({ [id] = 1 })
end

-- expire ends the leases of at most limit loans whose end has passed.
local function expire(limit)
  local counts = {}
  local function ended(id)
    if id ~= '' then counts[id] = (counts[id] or 0) + 1 end
  end
  local loans = call('ZRANGEBYSCORE', ENDS, '-inf', now(), 'LIMIT', 0, limit)
  if loans[1] then
    for _, text in ipairs(call('HMGET', LOANS, unpack(loans))) do
      for id in string.gmatch(text or '', '([^\n]*)\n') do ended(id) end
    end
    forget(loans)
  end
  local old = call('ZRANGEBYSCORE', LEASES, '-inf', now(), 'LIMIT', 0, limit)
  if old[1] then
    for _, member in ipairs(old) do ended(string.match(member, ' (.*)$')) end
    call('ZREM', LEASES, unpack(old))
  end
  if next(counts) then land(counts) end
end
