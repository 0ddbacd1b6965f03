-- running_state: what a person wants to see of a running limit.
--
-- KEYS   as in running.lua
-- ARGV   as in running.lua
-- Reply  {now, running, limit as last asked with, waiting, next end of a lease or 0,
--         first asked of the longest waiting or 0, blocked until or 0, why, blocks}
-- Cost   O(log n)

local c = call('HMGET', META, 'why', 'blocks')
local open = closed <= now
return {now, running, limit, waiting,
        tonumber(call('ZRANGE', HELD, '0', '0', 'WITHSCORES')[2] or 0),
        tonumber(call('ZRANGE', LINE, '0', '0', 'WITHSCORES')[2] or 0),
        open and 0 or closed, not open and c[1] or '', tonumber(c[2] or 0)}
