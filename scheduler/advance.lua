-- Settles ticks of schedules, if nobody else has, and gives the claims back.
--
-- KEYS[1..n]  state hashes
-- ARGV[1]     now in ms, or "" for the server's clock
-- ARGV[2]     the dispatcher
-- ARGV[3..]   for each key: revision, last as it was, last as it is to be,
--             dispatched, skipped, missed, late (to add), the instant that
--             became a job or "", its lateness in ms, why a tick is held or "",
--             for how many ms, ttl in ms
-- Reply       {1 or 0, ...}: settled, or last was another
-- Cost        O(n)
local counters = {'dispatched', 'skipped', 'missed', 'late'}
local reply = {}
for i, key in ipairs(KEYS) do
  local at = 3 + 12 * (i - 1)
  local field = 'last:' .. ARGV[at]
  local h = redis.call('HMGET', key, field, 'claim')
  if h[1] ~= ARGV[at + 1] then
    reply[i] = 0
  else
    reply[i] = 1
    redis.call('HSET', key, field, ARGV[at + 2])
    for c, name in ipairs(counters) do
      if ARGV[at + 2 + c] ~= '0' then
        redis.call('HINCRBY', key, name, ARGV[at + 2 + c])
      end
    end
    if ARGV[at + 7] ~= '' then
      redis.call('HSET', key, 'ticked', ARGV[at + 7], 'ticked_at', text(now), 'lateness', ARGV[at + 8])
    end
    if ARGV[at + 9] ~= '' then
      redis.call('HSET', key, 'hold', ARGV[at + 9])
    else
      redis.call('HDEL', key, 'hold')
    end
    redis.call('PEXPIRE', key, ARGV[at + 11])
  end
  if h[2] == ARGV[2] then
    local rest = tonumber(ARGV[at + 10])
    if reply[i] == 1 and rest > 0 then
      -- Nobody need ask before the rest is over.
      redis.call('HSET', key, 'claim', '-', 'claim_until', text(now + rest))
    else
      redis.call('HDEL', key, 'claim', 'claim_until')
    end
  end
end
return reply
