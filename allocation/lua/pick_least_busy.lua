-- pick, least-busy: the fewest leases in flight, ties at random; the pick is a new lease.
--
-- own      leases ZSET, as in lease.lua: the same for every take
-- ARGV[4]  cap: leases an endpoint may have
-- ARGV[5]  life of a lease, microseconds
-- reason   "busy": every eligible endpoint is at its cap; the instant is that of the next lease to end by itself
-- cost     O(log n); at most 64 ended leases are cleared by a call

local LEASES = KEYS[tonumber(ARGV[8])]
expire(LEASES, 64)
local busy = line(BUSY, takes)
local cap, ends = tonumber(ARGV[4]), now() + tonumber(ARGV[5])
local leases = {}

local function pick(barred, _, token)
  local id, flying = lowest(busy, barred)
  if not id then return nil end
  local n = math.floor(flying)
  if n >= cap then return nil, 'busy', sooner(next_end(LEASES), leases[1]) end
  give(busy, id, flying, n + 1 + turn())
  leases[#leases + 1] = ends
  leases[#leases + 1] = token .. ' ' .. id
  return id, token
end

local function settle(fields)
  call('ZADD', LEASES, unpack(leases))
  write(busy)
  for id, flying in pairs(busy.given) do
    fields[#fields + 1] = 'f:' .. id
    fields[#fields + 1] = exact(math.floor(flying))
  end
end
