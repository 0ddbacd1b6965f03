-- by score: for policies whose takes go by count + handicap and keep READY up to date. Put after begin.
--
-- reply  "again": READY lagged far behind, and this call did no more than mend 1,024 scores of it or so
-- cost   O(log n) a take, and that of the mending

if lag == '+' then
  behind_to = tonumber(call('ZRANGE', READY, -1, -1, 'WITHSCORES')[2] or nil)
elseif lag then
  behind_to = tonumber(lag)
end

ready = line(READY, takes, behind_to)
if behind_to then
  while ready.n < takes and extend(ready) do end
  if ready.n < takes and ready.edge < math.huge then
    write(ready)
    call('HSET', ENDPOINTS, 'lag', exact(behind_to))
    return 'again'
  end
  if ready.n == 0 or ready.scores[1] > behind_to then behind_to = nil end
end

-- use counts a take in an endpoint's score; false: it is not eligible.
local function use(id)
  local score = ready.given[id]
  if not score then
    score = tonumber(call('ZSCORE', READY, id) or nil)
    if not score then return false end
    if behind_to then score = behind({ id, score })[id] or score end
  end
  give(ready, id, score, math.floor(score) + 1 + turn())
  return true
end

-- next_use gives the least used, ties at random, and counts the take.
local function next_use(barred)
  local id, score = lowest(ready, barred)
  if id then give(ready, id, score, math.floor(score) + 1 + turn()) end
  return id
end
