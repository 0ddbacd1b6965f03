-- source: begins a reading of a list that is followed. Put after clock.
--
-- KEYS[1]     source ZSET, as in import.lua
-- ARGV[1..2]  now, seed
-- reply       {number of the reading, endpoints that the list has in the pool}
-- cost        O(log n)

local reading = tonumber(call('ZINCRBY', KEYS[1], 1, '*'))
local marks = call('ZSCORE', KEYS[1], '!') and 2 or 1
return { reading, call('ZCARD', KEYS[1]) - marks }
