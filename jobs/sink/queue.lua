-- Says which versions one sink has yet to be given, or that they are queued.
--
-- KEYS[1] ledger
-- ARGV[1] sink   ARGV[2] the feed's newest version, 0 = none   ARGV[3] versions kept   ARGV[4] life of the ledger, ms
-- ARGV[5] "ask"; "anew", what the ledger knows of newer versions is wrong; "queued", all up to ARGV[2] are in the queue
-- Reply: the first version that is not queued; newest + 1 where all are. A sink that is new, or begins anew, begins
-- with the newest version. One that asks and knows a newer version than the asker has nothing due. Cost O(1).
local field = ARGV[1] .. ':queued'
local newest = tonumber(ARGV[2])
local queued = tonumber(redis.call('HGET', KEYS[1], field))
if ARGV[5] == 'queued' then
  if not queued or queued < newest then
    redis.call('HSET', KEYS[1], field, ARGV[2])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
  return newest + 1
end
if not queued or (queued > newest and ARGV[5] == 'anew') then
  queued = math.max(newest - 1, 0)
  redis.call('HSET', KEYS[1], 'v', '1', field, string.format('%d', queued))
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
if queued >= newest then return newest + 1 end
return math.max(queued + 1, newest - tonumber(ARGV[3]) + 1, 1)
