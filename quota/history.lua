-- history: a quota's past day.
--
-- KEYS   as in frame.lua
-- ARGV   as in frame.lua
-- Reply  {now in µs, {counters, as seen.lua has them},
--         {quarter, 'grants units refusals back' as it began and label.lua's lines, …},
--         {label.lua's fields of the newest quarter with labels, …}}
-- Cost   O(quarters kept, and their labels)

-- Where the counters are gone, so is what was written of them.
return {now, counters(), state and call('HGETALL', SERIES) or {}, state and call('HGETALL', KEYS[12]) or {}}
