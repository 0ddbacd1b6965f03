-- pick, shuffled: every eligible endpoint once a pass, each pass in a new
-- random order, the last of one never the first of the next.
--
-- A turn is the number of a pass plus a random fraction. The lowest turn is
-- next; taking it puts it into the pass after this one, with a new fraction, so
-- a pass ends by itself and no shuffle of the whole is ever made. One that was
-- out for some passes is served once, not once for each.
-- cost  O(log n)

local function pick(barred)
  local id, turn = lowest(DECK, barred)
  if not id then return nil end
  local was = call('HMGET', ENDPOINTS, 'last', 'pass')
  local last = was[1]
  if id == last then
    local other, following = lowest(DECK, function(x) return x == last or barred and barred(x) end)
    if other and math.floor(following) == math.floor(turn) then id, turn = other, following end
  end
  local pass = math.max(math.floor(turn), tonumber(was[2] or 0))
  call('ZADD', DECK, exact(pass + 1 + fraction()), id)
  call('HSET', ENDPOINTS, 'last', id, 'pass', exact(pass))
  return id
end
