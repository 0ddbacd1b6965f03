-- begin: what every policy's takes begin with.
-- Put after clock, membership, again and choose.
--
-- KEYS[6]    STRING of the call, as in again.lua
-- ARGV[6]    number of the call
-- ARGV[8]    how many takes
-- cost       O(log n); at most 16 ended quarantines are returned

-- Kept of a reply is what cannot be looked up again, three lines for each take; no URL, for it has a password.
local function again(text)
  local replies, n = {}, 0
  for id, number, word in string.gmatch(text, '([^\n]*)\n([^\n]*)\n([^\n]*)\n') do
    replies[n + 1] = id
    replies[n + 2] = id ~= '' and call('HGET', ENDPOINTS, 'u:' .. id) or ''
    replies[n + 3] = number
    replies[n + 4] = word
    n = n + 4
  end
  return replies
end

local text = recall(KEYS[6], ARGV[6])
if text then return again(text) end

-- Before anything is read: who is eligible does not change while takes are made.
local parked_until = return_due(16)

local takes = tonumber(ARGV[8])
local known = call('HMGET', ENDPOINTS, 'last', 'pass', 'lag')
local last, pass, lag = known[1], tonumber(known[2] or 0), known[3]

local ready, behind_to -- by_score's: the line of READY, and the score up to which READY may be behind

-- sooner gives the earlier of two instants, either of which may be nil.
local function sooner(a, b)
  if a and b then return math.min(a, b) end
  return a or b
end
