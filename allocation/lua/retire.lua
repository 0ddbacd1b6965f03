-- retire: takes an endpoint out of the pool. Its count is kept for its return,
-- its health, verdict and bans are not; leases that are out end as they would.
-- Put after clock and membership.
--
-- cost  O(log n), and O(1) for each of the targets

local KEPT = 100000 -- counts of removed endpoints that are kept; the oldest go first

-- retire removes id; KEYS from the place of first on are target ZSETs that may hold its bans.
local function retire(id, held, gone, checks, names, first)
  leave(id)
  call('ZREM', PARKED, id)
  call('ZREM', held, id)
  call('ZREM', checks, id)
  call('ZREM', names, id)
  for i = first, #KEYS do call('ZREM', KEYS[i], id) end
  call('HDEL', ENDPOINTS, 'u:' .. id, 'h:' .. id, 's:' .. id, 't:' .. id, 'v:' .. id, 'x:' .. id, 'o:' .. id)
  call('ZADD', gone, exact(now()), id)
  if call('ZCARD', gone) > KEPT then
    for _, old in ipairs(call('ZRANGE', gone, 0, 1)) do
      call('ZREM', gone, old)
      call('HDEL', ENDPOINTS, 'c:' .. old, 'f:' .. old)
    end
  end
end
