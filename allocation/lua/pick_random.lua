-- pick, random: each eligible endpoint with the same chance, whatever was picked before.
-- cost  O(log n)

local function pick(barred)
  return any(READY, barred)
end

local function settle() end
