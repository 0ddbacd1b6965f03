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
-- reply       four texts for each take, one after another: id, url, count, lease; or "", "", microseconds to the next chance or "", reason
--             reason: "" none eligible, "target" paused, or what the policy says
-- cost        O(log n) a take; at most 16 ended quarantines are returned
--
-- A policy gives pick(barred, own) -> an id, and a lease; or nil, a reason
-- and an instant. And settle(fields), which writes its own and adds to the
-- fields of ENDPOINTS that are written.

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

-- Lists grow by one place at a time: of several that are assigned at once Lua begins with the last, and makes a hash of the list.
local latest -- whatever the policy, so that a change to no-repeat or shuffled repeats nothing
local gates = { ['0'] = {} }
local told = {} -- three for each take: id, count, lease; or "", the wait, the reason
local taken, n, counts = {}, 0, {} -- the n endpoints that are taken, and their counts
for i = 1, takes do
  local place = ARGV[7 + 2 * i] or '0'
  local g = gates[place] or gate(KEYS[tonumber(place)])
  gates[place] = g
  local id, word, at
  if g.pause then
    word, at = 'target', g.pause
  else
    id, word, at = pick(g.barred, tonumber(ARGV[8 + 2 * i] or 0))
    if not id then at = sooner(at, sooner(parked_until, g.ban)) end
  end
  if id then
    latest = id
    if not counts[id] then
      n = n + 1
      taken[n] = id
      counts[id] = 0
    end
  end
  told[3 * i - 2] = id or ''
  told[3 * i - 1] = not id and at and exact(math.max(at - now(), 1)) or ''
  told[3 * i] = word or ''
end

-- answer keeps what is told for a call that is sent again, and gives it with the URLs.
local function answer(urls)
  remember(KEYS[6], ARGV[6], table.concat(told, '\n') .. '\n')
  local replies = {}
  for i = 1, takes do
    replies[4 * i - 3] = told[3 * i - 2]
    replies[4 * i - 2] = urls[told[3 * i - 2]] or ''
    replies[4 * i - 1] = told[3 * i - 1]
    replies[4 * i] = told[3 * i]
  end
  return replies
end

if n == 0 then return answer({}) end

local reads = {}
for i = 1, n do
  reads[2 * i - 1] = 'u:' .. taken[i]
  reads[2 * i] = 'c:' .. taken[i]
end
local had = call('HMGET', ENDPOINTS, unpack(reads))
local urls, texts = {}, {}
for i = 1, n do
  urls[taken[i]] = had[2 * i - 1]
  counts[taken[i]] = tonumber(had[2 * i] or 0)
end
for i = 1, 3 * takes, 3 do
  local id = told[i]
  if id ~= '' then
    local count = counts[id] + 1
    counts[id], texts[id] = count, exact(count)
    told[i + 1] = texts[id]
  end
end
local fields = { 'last', latest }
for i = 1, n do
  fields[2 * i + 1] = reads[2 * i]
  fields[2 * i + 2] = texts[taken[i]]
end
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
return answer(urls)
