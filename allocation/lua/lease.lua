-- lease: allocations in flight and their ends. Put after clock and membership.
-- A member is "token endpoint", so a release needs the token and frees only its own.
--
-- LEASES  ZSET  leases by the instant of their end, microseconds; its KEYS number is the caller's
-- cost    O(log n) a lease

-- fly adds n to an endpoint's leases in flight.
local function fly(id, n)
  local flying = call('HINCRBY', ENDPOINTS, 'f:' .. id, n)
  if flying <= 0 then
    call('HDEL', ENDPOINTS, 'f:' .. id)
    flying = 0
  end
  call('ZADD', BUSY, 'XX', exact(flying + fraction()), id)
end

-- release ends a lease; one that has ended already does nothing.
local function release(leases, token, id)
  if call('ZREM', leases, token .. ' ' .. id) == 1 then fly(id, -1) end
end

-- next_end gives the instant at which the next lease ends by itself, or nil.
local function next_end(leases)
  return tonumber(call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2] or nil)
end

-- expire ends at most limit leases whose end has passed.
local function expire(leases, limit)
  local ends = next_end(leases)
  if not ends or ends > now() then return end
  for _, member in ipairs(call('ZRANGEBYSCORE', leases, '-inf', exact(now()), 'LIMIT', 0, limit)) do
    call('ZREM', leases, member)
    fly(string.match(member, ' (.*)$'), -1)
  end
end
