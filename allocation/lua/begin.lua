-- begin: what every policy's takes begin with, and the eligible by count + handicap.
-- Put after clock, membership, again and choose.
--
-- KEYS[6]    STRING of the call, as in again.lua
-- ARGV[6]    number of the call
-- ARGV[8]    how many takes
-- cost       O(log n); at most 16 ended quarantines are returned

-- Kept of a reply is what cannot be looked up again, a line for each take; no URL, for it has a password.
local function again(text)
  local replies = {}
  for line in string.gmatch(text, '([^\n]*)\n') do
    local id, number, word = string.match(line, '^(.-)\t(.-)\t(.*)$')
    if id == '' then
      replies[#replies + 1] = { '', number, word }
    else
      replies[#replies + 1] = { id, call('HGET', ENDPOINTS, 'u:' .. id) or '', tonumber(number), word }
    end
  end
  return replies
end

local text = recall(KEYS[6], ARGV[6])
if text then return again(text) end

-- Before anything is read: who is eligible does not change while takes are made.
local parked_until = return_due(16)

local takes = tonumber(ARGV[8])
local ready = line(READY, takes)

-- sooner gives the earlier of two instants, either of which may be nil.
local function sooner(a, b)
  if a and b then return math.min(a, b) end
  return a or b
end

-- use counts a take in an endpoint's score, the one that Redis has of it.
local function use(id, score)
  score = ready.given[id] or tonumber(score)
  give(ready, id, score, math.floor(score) + 1 + turn())
  return id
end

-- next_use gives the least used, ties at random, and counts the take.
local function next_use(barred)
  local id, score = lowest(ready, barred)
  return id and use(id, score)
end
