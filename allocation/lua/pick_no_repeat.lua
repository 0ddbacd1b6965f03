-- pick, no-repeat: at random, never the endpoint that this pool gave last.
--
-- ARGV[4]  alone: reuse, or anything else to be refused
-- reason   "alone": only the last one is eligible
-- cost     O(log n)

local rank -- of the last one; false: it is not eligible; nil: not known

local function pick(barred)
  local n = size(READY)
  if n == 0 then return nil end
  if rank == nil then rank = last and call('ZRANK', READY, last) or false end
  local id
  if barred then
    id = any(READY, function(x) return x == last or barred(x) end)
    if id then rank = nil end
  elseif not rank or n > 1 then
    -- The last one's place is left out of the draw, so one draw is enough.
    local r = dice(rank and n - 1 or n)
    if rank and r >= rank then r = r + 1 end
    id = at(READY, r)
    rank = r
  end
  if not id and rank and not (barred and barred(last)) then
    if ARGV[4] ~= 'reuse' then return nil, 'alone' end
    id = at(READY, rank)
  end
  last = id or last
  return id
end

local function settle() end
