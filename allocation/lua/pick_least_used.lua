-- pick, least-used: the lowest count + handicap, ties at random.
-- cost  O(log n)

local function pick(barred)
  return lowest(READY, barred)
end
