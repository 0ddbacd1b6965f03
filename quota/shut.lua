-- shut: closes a running limit for everybody for some time, or opens it. Of two
-- blocks the one that ends later holds. Leases that are held stay.
--
-- KEYS   as in running.lua
-- ARGV   as in running.lua, then how long, µs, or 0 to open; the reason, for a person
-- Reply  holders in line whose turn has come
-- Cost   O(log n), and those who are named

local span = tonumber(ARGV[3])
if span == 0 then
  call('HDEL', META, 'until', 'why')
  closed = 0
  touch()
  return ring(true, ALL)
end
call('HINCRBY', META, 'blocks', '1')
if now + span > closed then
  closed = now + span
  note('until', closed, 'why', ARGV[4])
else
  note('until', closed)
end
return {}
