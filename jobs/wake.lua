-- Wakes the snoozed jobs of one queue whose promised instant has come.
--
-- asynq's retry set has whole seconds, rounded down, and is polled; this keeps
-- microseconds. Woken jobs go to the head of the queue, since a place in a line is
-- held for a short while only, and stand there in the order of their promises:
-- what was woken before and has not been taken is lifted, and the new ones go
-- beneath it. So that this stays cheap, only so many stand there at a time; the
-- rest wait where they are, in order.
--
-- KEYS[1] wake   KEYS[2] asynq retry   KEYS[3] asynq scheduled   KEYS[4] asynq pending
-- KEYS[5] woken: those at the head, by promise
-- ARGV[1] prefix of asynq's task keys (same hash tag)   ARGV[2] woken jobs at the head, at most
-- Reply {woken, or -1 where too many stand at the head; ms until the next promise or -1}. Cost O(ARGV[2] log n) at most.
local t = redis.call('TIME')
local now = t[1] * 1000 + t[2] / 1000
local most = tonumber(ARGV[2])
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if not first[2] then return {0, -1} end
if tonumber(first[2]) > now then return {0, math.ceil(tonumber(first[2]) - now)} end

local head = {}
if redis.call('EXISTS', KEYS[5]) == 1 then
  local ids = redis.call('LRANGE', KEYS[4], -most, -1)
  local scores = #ids > 0 and redis.call('ZMSCORE', KEYS[5], unpack(ids)) or {}
  for i = #ids, 1, -1 do
    if not scores[i] then break end
    head[#head + 1] = {ids[i], tonumber(scores[i])}
  end
  if #head > most * 3 / 4 then return {-1, 0} end
end

local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, most - #head)
local all, woken = {unpack(head)}, 0
for i = 1, #due, 2 do
  local id = due[i]
  local task = ARGV[1] .. id
  if redis.call('ZREM', KEYS[2], id) == 1 or redis.call('ZREM', KEYS[3], id) == 1 then
    redis.call('HSET', task, 'state', 'pending', 'pending_since', string.format('%.0f', now * 1000000))
    redis.call('ZREM', KEYS[1], id)
    woken = woken + 1
    all[#all + 1] = {id, tonumber(due[i + 1]), woken}
  elseif redis.call('HGET', task, 'state') == 'active' then
    -- Its handler has not returned yet: asynq has not put it to sleep.
    redis.call('ZADD', KEYS[1], now + 5, id)
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
if woken > 0 then
  -- Popped from the right: the one due first stands last.
  table.sort(all, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return (a[3] or 0) > (b[3] or 0)
  end)
  local ids, scores = {}, {}
  for i, w in ipairs(all) do
    ids[i] = w[1]
    scores[2 * i - 1], scores[2 * i] = w[2], w[1]
  end
  if #head > 0 then redis.call('LTRIM', KEYS[4], 0, -#head - 1) end
  redis.call('RPUSH', KEYS[4], unpack(ids))
  redis.call('DEL', KEYS[5])
  redis.call('ZADD', KEYS[5], unpack(scores))
  redis.call('PEXPIRE', KEYS[5], 3600000)
end
first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if not first[2] then return {woken, -1} end
return {woken, math.max(math.ceil(tonumber(first[2]) - now), 0)}
