-- pick, no-repeat: at random, never the endpoint that this pool gave last.
--
-- ARGV[4]  alone: reuse, or anything else to be refused
-- reason   "alone": only the last one is eligible
-- cost     O(log n)

local function pick(barred)
  local last = call('HGET', ENDPOINTS, 'last')
  local n = call('ZCARD', READY)
  if n == 0 then return nil end
  local rank = last and call('ZRANK', READY, last)
  local id, score
  if barred then
    id, score = any(READY, function(x) return x == last or barred(x) end)
  elseif not rank or n > 1 then
    -- The last one's place is left out of the draw, so one draw is enough.
    local r = dice(rank and n - 1 or n)
    if rank and r >= rank then r = r + 1 end
    local found = call('ZRANGE', READY, r, r, 'WITHSCORES')
    id, score = found[1], tonumber(found[2])
  end
  if not id and rank and not (barred and barred(last)) then
    if ARGV[4] ~= 'reuse' then return nil, 'alone' end
    id = last
  end
  if id and id ~= last then call('HSET', ENDPOINTS, 'last', id) end
  return id, score
end
