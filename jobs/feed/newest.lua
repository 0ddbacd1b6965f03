-- Reads the newest version whole.
--
-- KEYS[1] head   KEYS[2] data
-- Reply {number, meta, items, raw}; {0} where there is none yet; {number} where
-- its content is gone. Cost O(1).
local version = redis.call('HGET', KEYS[1], 'version')
if not version then return {0} end
local n = string.format('%d', tonumber(version))
local got = redis.call('HMGET', KEYS[2], 'meta:' .. n, 'items:' .. n, 'raw:' .. n)
if not got[1] then return {tonumber(version)} end
return {tonumber(version), got[1], got[2] or '', got[3] or ''}
