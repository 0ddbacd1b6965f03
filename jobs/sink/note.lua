-- Notes how a delivery came out.
--
-- KEYS[1] ledger
-- ARGV[1] sink   ARGV[2] version   ARGV[3] now, ms   ARGV[4] what went wrong, "" = delivered
-- ARGV[5] "1": it is not tried again   ARGV[6] life of the ledger, ms
-- Reply 1. Cost O(1). The version delivered last is the highest; a success clears the error of its own version
-- and of older ones.
local s = ARGV[1] .. ':'
local version = tonumber(ARGV[2])
if ARGV[4] == '' then
  redis.call('HINCRBY', KEYS[1], s .. 'deliveries', 1)
  if version > tonumber(redis.call('HGET', KEYS[1], s .. 'delivered') or '0') then
    redis.call('HSET', KEYS[1], s .. 'delivered', ARGV[2], s .. 'delivered_ms', ARGV[3])
  end
  if version >= tonumber(redis.call('HGET', KEYS[1], s .. 'error_version') or '0') then
    redis.call('HDEL', KEYS[1], s .. 'error', s .. 'error_ms', s .. 'error_version')
  end
else
  redis.call('HINCRBY', KEYS[1], s .. 'failures', 1)
  if ARGV[5] == '1' then redis.call('HINCRBY', KEYS[1], s .. 'lost', 1) end
  redis.call('HSET', KEYS[1], s .. 'error', ARGV[4], s .. 'error_ms', ARGV[3], s .. 'error_version', ARGV[2])
end
redis.call('HSET', KEYS[1], 'v', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1
