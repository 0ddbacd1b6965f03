-- take: picks eligible endpoints, one for each take, and counts the allocations.
-- Put after clock, membership, again, choose and one pick_*.lua. The takes of one call
-- are made one after another, as if each had come alone.
--
-- KEYS[1..5]  as in membership.lua
-- KEYS[6]     STRING of the call, as in again.lua
-- KEYS[7..]   what the takes name
-- ARGV[1..3]  now, seed, start
-- ARGV[4..5]  the policy's own
-- ARGV[6]     number of the call
-- ARGV[7..]   three for each take:
--             place in KEYS of its target ZSET (endpoint -> end of its ban, * -> end of the target's pause), or 0
--             place in KEYS of the policy's own key, or 0
--             token of a lease, or ""
-- reply       for each take {id, url, count, lease}, or {"", microseconds to the next chance or "", reason}
--             reason: "" none eligible, "target" paused, or what the policy says
-- cost        O(log n) a take; at most 16 ended quarantines are returned

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

local parked_until = return_due(16)

local function empty(reason, at)
  return { '', at and exact(math.max(at - now(), 1)) or '', reason }
end

-- sooner gives the earlier of two instants, either of which may be nil.
local function sooner(a, b)
  if a and b then return math.min(a, b) end
  return a or b
end

-- gate reads what a target forbids: the end of its pause, or the end of the
-- next ban and who is barred.
local function gate(target)
  if call('EXISTS', target) == 0 then return {} end
  local pause = tonumber(call('ZSCORE', target, '*') or nil)
  if pause and pause > now() then return { pause = pause } end
  local bans = call('ZRANGEBYSCORE', target, '(' .. exact(now()), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if not bans[2] then return {} end
  return {
    ban = tonumber(bans[2]),
    barred = function(id)
      local ends = call('ZSCORE', target, id)
      return ends and tonumber(ends) > now()
    end,
  }
end

local gates = { ['0'] = {} }

local function take(place, own, token)
  if not gates[place] then gates[place] = gate(KEYS[tonumber(place)]) end
  local g = gates[place]
  if g.pause then return empty('target', g.pause) end
  -- pick gives the endpoint, its score if it knows that, and a lease; or nil, a reason and an instant.
  local id, score, lease = pick(g.barred, KEYS[tonumber(own)], token)
  if not id then return empty(score or '', sooner(lease, sooner(parked_until, g.ban))) end
  local count = call('HINCRBY', ENDPOINTS, 'c:' .. id, 1)
  if score then
    call('ZADD', READY, exact(math.floor(score) + 1 + fraction()), id)
  else
    call('ZINCRBY', READY, 1, id)
  end
  return { id, call('HGET', ENDPOINTS, 'u:' .. id), count, lease or '' }
end

local replies, kept = {}, {}
for i = 7, #ARGV, 3 do
  local r = take(ARGV[i], ARGV[i + 1], ARGV[i + 2])
  replies[#replies + 1] = r
  kept[#kept + 1] = r[1] .. '\t' .. r[#r - 1] .. '\t' .. r[#r] .. '\n'
end
remember(KEYS[6], ARGV[6], table.concat(kept))
return replies
