-- sweep: retires endpoints that a list has no more. Put after clock, membership and retire.
--
-- KEYS[1..9]  as in hand.lua
-- KEYS[10]    source ZSET, as in import.lua
-- KEYS[11..]  target ZSETs (take.lua) that may hold bans of those that go
-- ARGV[1..3]  now, seed, start
-- ARGV[4]     digest of the list
-- ARGV[5]     number of the reading that is through: who was last seen by an earlier one goes
-- ARGV[6]     how many to look at
-- reply       {looked at, retired}, or "overtaken"; fewer looked at than asked for: that was all
-- cost        O(log n) an endpoint

local SOURCE, owner, reading = KEYS[10], ARGV[4], tonumber(ARGV[5])

local through = tonumber(call('ZSCORE', SOURCE, '!') or 0)
if through > reading then return 'overtaken' end
call('ZADD', SOURCE, reading, '!')

-- The two marks are members too: "!" stands at this reading now, and "*" at this or a later one.
local found = call('ZRANGEBYSCORE', SOURCE, '-inf', '(' .. exact(reading), 'LIMIT', 0, ARGV[6])
local retired = 0
for _, id in ipairs(found) do
  call('ZREM', SOURCE, id)
  local lists = call('HGET', ENDPOINTS, 'o:' .. id)
  if lists then
    local others = {}
    for list in string.gmatch(lists, '%S+') do
      if list ~= owner then others[#others + 1] = list end
    end
    if #others > 0 then
      call('HSET', ENDPOINTS, 'o:' .. id, table.concat(others, ' '))
    else
      retire(id, KEYS[6], KEYS[7], KEYS[8], KEYS[9], 11)
      retired = retired + 1
    end
  end
end
return { #found, retired }
