-- Stores a version, or renews the newest one.
--
-- KEYS[1] head   KEYS[2] data
-- ARGV[1] channel
-- ARGV[2] instant at which the fetch began, µs (order of versions)
-- ARGV[3] now, ms
-- ARGV[4] content hash; "" renews whatever version stands (a 304)
-- ARGV[5] items, JSON   ARGV[6] raw answer   ARGV[7] meta without its version, JSON
-- ARGV[8] versions kept
-- ARGV[9] ETag          ARGV[10] Last-Modified
-- ARGV[11] life of the keys in ms, 0 = no end   ARGV[12] number of items
-- ARGV[13] the newest version as the caller knew it: first_seen was carried over from that one
-- ARGV[14] what was asked and how it was read: the validators are for that alone
--
-- Reply {version, what}: what = 1 new version, 0 renewed, -1 an older fetch: nothing changed,
-- -2 the newest version is another than ARGV[13]: nothing changed, read it and ask again.
-- Cost O(1) and the versions dropped: they are numbers in a row, so nothing is searched.
local AHEAD = 600000 -- ms: clocks that take over from one another (a failover) are nearer than that
local head = redis.call('HMGET', KEYS[1], 'version', 'began_us', 'hash', 'oldest', 'last_error_ms')
local version = tonumber(head[1] or '0')
local began = tonumber(ARGV[2])
if head[2] and began < tonumber(head[2]) then
  -- A version that began long after now is of a clock that was wrong and has been set
  -- right: it is no newer one, or nothing would be taken until that instant comes. Now is
  -- this server's: that of a machine that slept in the middle of its fetch is long past.
  local t = redis.call('TIME')
  local now = math.max(tonumber(ARGV[3]), t[1] * 1000 + math.floor(t[2] / 1000))
  if tonumber(head[2]) <= (now + AHEAD) * 1000 then return {version, -1} end
end
-- A version whose content is gone (it ended before its head) is none: it is stored anew, and asked for whole.
if version > 0 and redis.call('HEXISTS', KEYS[2], 'meta:' .. string.format('%d', version)) == 0 then
  head[3] = false
  redis.call('HDEL', KEYS[1], 'hash', 'etag', 'last_modified', 'asked')
  if ARGV[4] == '' then return {version, -1} end
end
local what = 0
if ARGV[4] == '' then
  if version == 0 then return {0, -1} end
elseif ARGV[4] ~= head[3] or version == 0 then
  if version ~= tonumber(ARGV[13]) or ARGV[5] == '' then return {version, -2} end
  what = 1
  version = version + 1
  local n = string.format('%d', version)
  redis.call('HSET', KEYS[2], 'items:' .. n, ARGV[5], 'raw:' .. n, ARGV[6], 'meta:' .. n, ARGV[7])
  -- A history that was lowered leaves more than one to drop; a hundred a call bound the work.
  local oldest = tonumber(head[4] or '1')
  local last = math.min(version - tonumber(ARGV[8]), oldest + 99)
  while oldest <= last do
    local old = string.format('%d', oldest)
    redis.call('HDEL', KEYS[2], 'items:' .. old, 'raw:' .. old, 'meta:' .. old)
    oldest = oldest + 1
  end
  redis.call('HSET', KEYS[1], 'version', n, 'hash', ARGV[4], 'stored_ms', ARGV[3], 'items', ARGV[12],
    'oldest', string.format('%d', oldest))
end
if ARGV[4] == '' then
  redis.call('HSET', KEYS[1], 'began_us', ARGV[2], 'fetched_ms', ARGV[3])
else
  redis.call('HSET', KEYS[1], 'began_us', ARGV[2], 'fetched_ms', ARGV[3],
    'etag', ARGV[9], 'last_modified', ARGV[10], 'asked', ARGV[14])
end
if head[5] then redis.call('HDEL', KEYS[1], 'last_error', 'last_error_ms') end
local life = tonumber(ARGV[11])
if life > 0 then
  redis.call('PEXPIRE', KEYS[1], life)
  redis.call('PEXPIRE', KEYS[2], life)
end
redis.call('PUBLISH', ARGV[1], 'version ' .. string.format('%d', version))
return {version, what}
