-- Goes before every script: what time it is, and how to write it.
--
-- ARGV[1]  now in ms, or "" for the server's clock
-- Cost     O(1)
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
-- tostring would round a number of 13 digits.
local function text(x) return string.format('%.0f', x) end
