-- take: picks eligible endpoints, one for each take, and counts the allocations.
-- Put after clock, membership, again, choose, begin, by_score where the policy goes by it, and one pick_*.lua. The takes of one call
-- are made one after another, as if each had come alone; what they read and
-- what they write is shared.
--
-- KEYS[1..5]  as in membership.lua
-- KEYS[6]     STRING of the call, as in again.lua
-- KEYS[7..]   what the takes name
-- ARGV[1..3]  now, seed, start
-- ARGV[4..5]  the policy's own
-- ARGV[6]     number of the call
-- ARGV[7]     least-busy: token of the call's loan
-- ARGV[8]     how many takes
-- ARGV[9..]   two for each take, left out where none of them names anything:
--             place in KEYS of its target ZSET (endpoint -> end of its ban, * -> end of the target's pause), or 0
--             place in KEYS of the policy's own key, or 0
-- reply       for each take {id, url, count, lease}, or {"", microseconds to the next chance or "", reason}
--             reason: "" none eligible, "target" paused, or what the policy says
-- cost        O(log n) a take; at most 16 ended quarantines are returned
--
-- A policy gives pick(barred, own) -> an id, and a lease; or nil, a reason
-- and an instant. And settle(fields), which writes its own and adds to the
-- fields of ENDPOINTS that are written.

local function empty(reason, at)
  return { '', at and exact(math.max(at - now(), 1)) or '', reason }
end

-- gate reads what a target forbids: the end of its pause, or the end of the
-- next ban and who is barred.
local function gate(target)
  if call('EXISTS', target) == 0 then return {} end
  local pause = tonumber(call('ZSCORE', target, '*') or nil)
  if pause and pause > now() then return { pause = pause } end
  local bans = call('ZRANGEBYSCORE', target, '(' .. exact(now()), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if not bans[2] then return {} end
  local known = {}
  return {
    ban = tonumber(bans[2]),
    barred = function(id)
      if known[id] == nil then
        local ends = call('ZSCORE', target, id)
        known[id] = ends and tonumber(ends) > now() or false
      end
      return known[id]
    end,
  }
end

local latest -- whatever the policy, so that a change to no-repeat or shuffled repeats nothing
local gates = { ['0'] = {} }
local replies, taken, times = {}, {}, {} -- taken are the endpoints, times how often each is
for i = 1, takes do
  local place = ARGV[7 + 2 * i] or '0'
  local g = gates[place] or gate(KEYS[tonumber(place)])
  gates[place] = g
  local reply
  if g.pause then
    reply = empty('target', g.pause)
  else
    local id, lease, at = pick(g.barred, tonumber(ARGV[8 + 2 * i] or 0))
    if not id then
      reply = empty(lease or '', sooner(at, sooner(parked_until, g.ban)))
    else
      if not times[id] then taken[#taken + 1] = id end
      times[id] = (times[id] or 0) + 1
      latest = id
      reply = { id, '', times[id], lease or '' }
    end
  end
  replies[#replies + 1] = reply
end

-- answer keeps the replies for a call that is sent again, and gives them.
local function answer()
  local kept = {}
  for i, r in ipairs(replies) do kept[i] = r[1] .. '\t' .. r[#r - 1] .. '\t' .. r[#r] .. '\n' end
  remember(KEYS[6], ARGV[6], table.concat(kept))
  return replies
end

if not taken[1] then return answer() end

local reads = {}
for i, id in ipairs(taken) do
  reads[2 * i - 1], reads[2 * i] = 'u:' .. id, 'c:' .. id
end
local had = call('HMGET', ENDPOINTS, unpack(reads))
local urls, counts, fields = {}, {}, {}
for i, id in ipairs(taken) do
  urls[id], counts[id] = had[2 * i - 1], tonumber(had[2 * i] or 0)
  fields[2 * i - 1], fields[2 * i] = reads[2 * i], exact(counts[id] + times[id])
end
for _, reply in ipairs(replies) do
  local id = reply[1]
  if id ~= '' then reply[2], reply[3] = urls[id], counts[id] + reply[3] end
end
fields[#fields + 1], fields[#fields + 2] = 'last', latest
settle(fields)
local lags = '+'
if ready then
  write(ready)
  lags = behind_to and exact(behind_to)
end
if lags then
  fields[#fields + 1], fields[#fields + 2] = 'lag', lags
elseif lag then
  call('HDEL', ENDPOINTS, 'lag')
end
call('HSET', ENDPOINTS, unpack(fields))
return answer()
