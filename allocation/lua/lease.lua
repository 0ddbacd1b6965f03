-- lease: allocations in flight and their ends. Put after clock and membership.
-- A member is "token endpoint", so a release needs the token and frees only its own.
--
-- LEASES  ZSET  leases by the instant of their end, microseconds; its KEYS number is the caller's
-- cost    O(log n) a lease

-- land takes ended leases off their endpoints' counts of those in flight;
-- ended is how many, by endpoint.
local function land(ended)
  local ids, reads = {}, {}
  for id in pairs(ended) do
    ids[#ids + 1] = id
    reads[#reads + 1] = 'f:' .. id
  end
  local flying = call('HMGET', ENDPOINTS, unpack(reads))
  local still, none, scores = {}, {}, {}
  for i, field in ipairs(reads) do
    local n = math.max(tonumber(flying[i] or 0) - ended[ids[i]], 0)
    if n > 0 then
      still[#still + 1] = field
      still[#still + 1] = exact(n)
    else
      none[#none + 1] = field
    end
    scores[#scores + 1] = n + turn()
    scores[#scores + 1] = ids[i]
  end
  if still[1] then call('HSET', ENDPOINTS, unpack(still)) end
  if none[1] then call('HDEL', ENDPOINTS, unpack(none)) end
  call('ZADD', BUSY, 'XX', unpack(scores))
end

-- release ends a lease; one that has ended already does nothing.
local function release(leases, token, id)
  if call('ZREM', leases, token .. ' ' .. id) == 1 then land({ [id] = 1 }) end
end

-- next_end gives the instant at which the next lease ends by itself, or nil.
local function next_end(leases)
  return tonumber(call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2] or nil)
end

-- expire ends at most limit leases whose end has passed.
local function expire(leases, limit)
  local ended = call('ZRANGEBYSCORE', leases, '-inf', now(), 'LIMIT', 0, limit)
  if not ended[1] then return end
  call('ZREM', leases, unpack(ended))
  local counts = {}
  for _, member in ipairs(ended) do
    local id = string.match(member, ' (.*)$')
    counts[id] = (counts[id] or 0) + 1
  end
  land(counts)
end
