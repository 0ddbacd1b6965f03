-- membership: who is eligible, who is out, and how one gets from there to here.
--
-- KEYS[1]  endpoints HASH   u:ID url, c:ID count, h:ID handicap, s:ID health, t:ID turn kept, f:ID leases kept,
--                           last endpoint given, pass under way, lag
-- KEYS[2]  ready     ZSET   the eligible by score: count + handicap; see lag
-- KEYS[3]  deck      ZSET   the eligible by turn: number of the pass in which each is next
-- KEYS[4]  busy      ZSET   the eligible by leases in flight
--          In these three a random fraction below 1 is added to the whole number: it breaks ties, anew each time.
-- KEYS[5]  parked    ZSET   the quarantined by the instant of their return, microseconds
-- ARGV[3]  start            "floor" or the score at which new and returning members start
-- cost     O(log n) an endpoint
--
-- Only policies that go by the score write it at each take: that is a write at a random place of a big set. The
-- others let READY lag, so that it is never above count + handicap, and note it in the field lag. Whoever
-- asks for the lowest then reads from the lowest of READY up and mends what he meets. lag is "+" while such
-- takes are made, and from then on the score up to which READY may be behind.

local ENDPOINTS, READY, DECK, BUSY, PARKED = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- health gives an endpoint's record; none is kept of one that is active and clean.
local function health(id)
  local text = call('HGET', ENDPOINTS, 's:' .. id)
  if text then return cjson.decode(text) end
  return { v = 1, state = 'active', strikes = 0, fails = 0 }
end

local function keep(id, record)
  if record.state == 'active' and record.strikes == 0 and record.fails == 0 then
    call('HDEL', ENDPOINTS, 's:' .. id)
  else
    call('HSET', ENDPOINTS, 's:' .. id, cjson.encode(record))
  end
end

-- keep_flying notes an endpoint's leases while BUSY does not have it.
local function keep_flying(id, n)
  if n > 0 then call('HSET', ENDPOINTS, 'f:' .. id, n) else call('HDEL', ENDPOINTS, 'f:' .. id) end
end

-- behind gives the scores of those among found (ids and scores of READY, in turn) whose score there is too low.
local function behind(found)
  local reads = {}
  for i = 1, #found, 2 do
    reads[i], reads[i + 1] = 'c:' .. found[i], 'h:' .. found[i]
  end
  local scores = {}
  local had = call('HMGET', ENDPOINTS, unpack(reads))
  for i = 1, #found, 2 do
    local score = (tonumber(had[i]) or 0) + (tonumber(had[i + 1]) or 0)
    if score > math.floor(tonumber(found[i + 1])) then scores[found[i]] = score + turn() end
  end
  return scores
end

-- floor gives the lowest score among the eligible, or nil where there are none. Where READY lags and
-- the lowest is not found among the MENDED that one call looks at, it is the lowest of these.
local MENDED = 1024
local mended, lowest_mended = 0, nil
local function floor()
  while true do
    local found = call('ZRANGE', READY, 0, mended < MENDED and 15 or 0, 'WITHSCORES')
    if not found[1] then return nil end
    local low = math.floor(tonumber(found[2]))
    if mended == 0 and call('HEXISTS', ENDPOINTS, 'lag') == 0 then return low end
    if mended >= MENDED then return math.max(low, lowest_mended) end
    local late, args = behind(found), {}
    for id, score in pairs(late) do
      args[#args + 1], args[#args + 2] = tied(score), id
      lowest_mended = math.min(lowest_mended or math.huge, math.floor(score))
    end
    if args[1] then call('ZADD', READY, unpack(args)) end
    if not late[found[1]] then return low end
    mended = mended + #args / 2
  end
end

-- admit makes an endpoint eligible, at the score that start says.
local function admit(id)
  local had = call('HMGET', ENDPOINTS, 'c:' .. id, 'h:' .. id, 't:' .. id, 'f:' .. id, 'pass')
  local count = tonumber(had[1] or 0)
  local score = tonumber(ARGV[3]) or floor() or count + tonumber(had[2] or 0)
  call('HSET', ENDPOINTS, 'h:' .. id, exact(score - count))
  call('ZADD', READY, exact(score + fraction()), id)
  call('ZADD', BUSY, exact(tonumber(had[4] or 0) + fraction()), id)

  -- It keeps the turn it had, unless that pass is over; then, or when it is new, it joins this one, anywhere in
  -- it: a place that has gone by already means that it is next.
  local turn, pass = tonumber(had[3] or -1), tonumber(had[5] or 0)
  if turn < pass then
    local first = call('ZRANGE', DECK, 0, 0, 'WITHSCORES')
    turn = math.max(math.floor(tonumber(first[2] or 0)), pass) + fraction()
  end
  call('ZADD', DECK, exact(turn), id)
  call('HDEL', ENDPOINTS, 't:' .. id, 'f:' .. id)
end

-- leave takes an endpoint out of the eligible; its turn and its leases are kept for its return.
local function leave(id)
  local turn = call('ZSCORE', DECK, id)
  if turn then call('HSET', ENDPOINTS, 't:' .. id, turn) end
  local flying = call('ZSCORE', BUSY, id)
  if flying then keep_flying(id, math.floor(flying)) end
  call('ZREM', READY, id)
  call('ZREM', DECK, id)
  call('ZREM', BUSY, id)
end

-- park quarantines an endpoint until an instant.
local function park(id, record, ends)
  leave(id)
  record.state = 'quarantined'
  record.ends = exact(ends)
  keep(id, record)
  call('ZADD', PARKED, record.ends, id)
end

-- unpark ends a quarantine: the endpoint is eligible again, in the state given.
local function unpark(id, record, state)
  call('ZREM', PARKED, id)
  record.state = state
  record.ends = nil
  record.was = nil
  keep(id, record)
  admit(id)
end

-- return_due brings back at most limit endpoints whose quarantine is over and
-- gives the next return, or nil.
local function return_due(limit)
  local first = call('ZRANGE', PARKED, 0, 0, 'WITHSCORES')
  local ends = tonumber(first[2] or nil)
  if not ends or ends > now() then return ends end
  for _, id in ipairs(call('ZRANGEBYSCORE', PARKED, '-inf', exact(now()), 'LIMIT', 0, limit)) do
    unpark(id, health(id), 'probation')
  end
  first = call('ZRANGE', PARKED, 0, 0, 'WITHSCORES')
  return tonumber(first[2] or nil)
end
