-- pick, least-used: the lowest count + handicap, ties at random.
-- cost  O(log n)

local function pick(barred)
  return next_use(barred)
end

local function settle() end
