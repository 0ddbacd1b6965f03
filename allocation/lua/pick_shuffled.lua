-- pick, shuffled: every eligible endpoint once a pass, each pass in a new
-- random order, the last of one never the first of the next.
--
-- A turn is the number of a pass plus a random fraction. The lowest turn is
-- next; taking it puts it into the pass after this one, with a new fraction, so
-- a pass ends by itself and no shuffle of the whole is ever made. One that was
-- out for some passes is served once, not once for each.
-- cost  O(log n)

local deck = line(DECK, takes + 1)

local function pick(barred)
  local id, turn = lowest(deck, barred)
  if not id then return nil end
  if id == last then
    local other, following = lowest(deck, function(x) return x == last or barred and barred(x) end)
    if other and math.floor(following) == math.floor(turn) then id, turn = other, following end
  end
  pass = math.max(math.floor(turn), pass)
  give(deck, id, turn, pass + 1 + fraction())
  last = id
  return id
end

local function settle(fields)
  write(deck)
  fields[#fields + 1], fields[#fields + 2] = 'pass', exact(pass)
end
