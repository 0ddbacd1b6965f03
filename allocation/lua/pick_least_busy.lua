-- pick, least-busy: the fewest leases in flight, ties at random; the pick is a new lease.
--
-- KEYS[7..9]  ends, loans and leases, as in lease.lua
-- ARGV[4]  cap: leases an endpoint may have
-- ARGV[5]  life of a lease, microseconds
-- ARGV[7]  token of the call's loan
-- reason   "busy": every eligible endpoint is at its cap; the instant is that of the next lease to end by itself
-- cost     O(log n); at most 8 ended loans are cleared by a call

expire(8)
local busy = line(BUSY, takes)
local cap, ends = tonumber(ARGV[4]), now() + tonumber(ARGV[5])
local lent = {}

-- next_end gives the instant at which the next lease ends by itself, or nil.
local function next_end()
  local first = lent[1] and ends
  for _, key in ipairs({ ENDS, LEASES }) do
    first = sooner(first, tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or nil))
  end
  return first
end

local function pick(barred)
  local id, flying = lowest(busy, barred)
  if not id then return nil end
  local n = math.floor(flying)
  if n >= cap then return nil, 'busy', next_end() end
  give(busy, id, flying, n + 1 + turn())
  lent[#lent + 1] = id
  return id, ARGV[7] .. '.' .. #lent
end

local function settle()
  lend(ARGV[7], lent, exact(ends))
  write(busy)
end
