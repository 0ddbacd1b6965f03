-- choose: members of the sorted sets, by rank or by score, as the takes made so
-- far have left them.
--
-- While takes are made nothing of theirs is written: ranks in Redis stand still
-- and can be read once for all takes of the call. The scores that takes give are
-- kept in lines and written at the end, all in one command.
--
-- skip  function of an id, true for one that must not be chosen; or nil
-- cost  O(log n); with some skipped, about 1,024 more members are looked at, at most

local PROBES, CHUNK, SCAN, LEVEL = 16, 64, 1024, 8

local sizes, wholes = {}, {}

local function size(set)
  if not sizes[set] then sizes[set] = call('ZCARD', set) end
  return sizes[set]
end

-- at gives the member at a rank; a small set is read whole.
local function at(set, rank)
  if size(set) > CHUNK then
    local place = exact(rank)
    return call('ZRANGE', set, place, place)[1]
  end
  wholes[set] = wholes[set] or call('ZRANGE', set, 0, -1)
  return wholes[set][rank + 1]
end

-- walk goes up from a rank, and on from the lowest, to the first that is not skipped.
local function walk(set, rank, skip)
  local n, seen = size(set), 0
  while seen < math.min(n, SCAN) do
    local from = (rank + seen) % n
    local found = call('ZRANGE', set, from, from + CHUNK - 1)
    for _, id in ipairs(found) do
      if not skip(id) then return id end
    end
    seen = seen + #found
  end
  return nil
end

-- any gives a member at random, each with the same chance. Only where every
-- probe of a big set hits a skipped one, it is the next after a random rank.
local function any(set, skip)
  local n = size(set)
  if n == 0 then return nil end
  if not skip then return at(set, dice(n)) end
  if n > CHUNK then
    for _ = 1, PROBES do
      local id = at(set, dice(n))
      if not skip(id) then return id end
    end
    return walk(set, dice(n), skip)
  end
  local free = {}
  for rank = 0, n - 1 do
    if not skip(at(set, rank)) then free[#free + 1] = rank end
  end
  if not free[1] then return nil end
  return at(set, free[dice(#free) + 1])
end

-- line reads a set from its lowest member on, as far as it is needed: first so
-- many members, then CHUNK at a time. ids and scores hold, in order from first
-- to n, every member with a score up to edge; given holds the scores that takes
-- gave, above edge too. In a set that lags the scores that members truly have
-- count as given.
local function line(set, reads, lags)
  return { set = set, reads = reads, lags = lags, read = 0, edge = -math.huge, ids = {}, scores = {}, first = 1, n = 0, given = {} }
end

local function insert(l, id, score)
  local low, high = l.first, l.n + 1
  while low < high do
    local mid = math.floor((low + high) / 2)
    if l.scores[mid] <= score then low = mid + 1 else high = mid end
  end
  table.insert(l.ids, low, id)
  table.insert(l.scores, low, score)
  l.n = l.n + 1
end

-- level reads the first members of a line without their scores, which take Redis longer to write than to find;
-- false: they are not all of one whole number, or are the whole set.
local function level(l)
  local found = call('ZRANGE', l.set, 0, l.reads - 1)
  local n = #found
  if n < l.reads then return false end
  local ends = call('ZMSCORE', l.set, found[1], found[n])
  local low, high = math.floor(tonumber(ends[1])), tonumber(ends[2])
  if math.floor(high) > low then return false end
  local ids, scores, given, kept = l.ids, l.scores, l.given, 0
  for i = 1, n do
    local id = found[i]
    if not given[id] then
      kept = kept + 1
      ids[kept] = id
      scores[kept] = low
    end
  end
  l.n, l.edge, l.read, l.reads = kept, high, n, CHUNK
  return true
end

-- extend reads on; false: the set is at its end, or enough of it was looked at.
local function extend(l)
  if l.edge == math.huge or l.read >= SCAN then return false end
  if l.read == 0 and l.reads > LEVEL and not l.lags and level(l) then return true end
  local before = l.edge
  local found = call('ZRANGE', l.set, l.read, l.read + l.reads - 1, 'WITHSCORES')
  local late = l.lags and found[1] and behind(found) or {}
  for i = 1, #found, 2 do
    local id, score = found[i], tonumber(found[i + 1])
    if late[id] and not l.given[id] then
      l.given[id] = late[id]
    elseif not l.given[id] then
      l.n = l.n + 1
      l.ids[l.n], l.scores[l.n] = id, score
    end
    l.edge = score
  end
  l.read = l.read + l.reads
  if #found < 2 * l.reads then l.edge = math.huge end
  l.reads = CHUNK
  for id, score in pairs(l.given) do
    if score > before and score <= l.edge then insert(l, id, score) end
  end
  return true
end

-- lowest gives the member with the lowest score, and the score. With more than
-- 1,024 skipped below the lowest free one it gives a free one at random.
local function lowest(l, skip)
  local i = l.first
  repeat
    while i <= l.n do
      local id = l.ids[i]
      if not (skip and skip(id)) then return id, l.scores[i] end
      i = i + 1
    end
  until not extend(l)
  if l.edge == math.huge then return nil end
  local id = any(l.set, skip)
  return id, id and (l.given[id] or tonumber(call('ZSCORE', l.set, id)))
end

-- give changes a member's score; was is the one it had.
local function give(l, id, was, score)
  if was <= l.edge then
    local i = l.first
    while i <= l.n and l.ids[i] ~= id do i = i + 1 end
    if i == l.first and i <= l.n then
      l.first = i + 1
    elseif i <= l.n then
      table.remove(l.ids, i)
      table.remove(l.scores, i)
      l.n = l.n - 1
    end
  end
  l.given[id] = score
  if score <= l.edge then insert(l, id, score) end
end

-- write puts the scores that a line has given into its set.
local function write(l)
  local args, n = {}, 0
  for id, score in pairs(l.given) do
    args[n + 1] = tied(score)
    args[n + 2] = id
    n = n + 2
  end
  if args[1] then call('ZADD', l.set, unpack(args)) end
end
