-- pick, random: each eligible endpoint with the same chance, whatever was picked before.
-- cost  O(log n)

local function pick(barred)
  local id, score = any(READY, barred)
  return id and use(id, score)
end

local function settle() end
