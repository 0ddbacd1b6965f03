-- pick, least-busy: the fewest leases in flight, ties at random; the pick is a new lease.
--
-- own      leases ZSET, as in lease.lua
-- ARGV[4]  cap: leases an endpoint may have
-- ARGV[5]  life of a lease, microseconds
-- reason   "busy": every eligible endpoint is at its cap; the instant is that of the next lease to end by itself
-- cost     O(log n); at most 64 ended leases are cleared by a call

local cleared

local function pick(barred, leases, token)
  if not cleared then
    expire(leases, 64)
    cleared = true
  end
  local id, flying = lowest(BUSY, barred)
  if not id then return nil end
  if math.floor(flying) >= tonumber(ARGV[4]) then return nil, 'busy', next_end(leases) end
  call('ZADD', leases, exact(now() + tonumber(ARGV[5])), token .. ' ' .. id)
  fly(id, 1)
  return id, nil, token
end
