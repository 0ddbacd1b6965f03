-- block: closes the quota for everybody for some time, or opens it. Of two
-- blocks the one that ends later holds.
--
-- KEYS   as in frame.lua
-- ARGV   as in frame.lua, then how long, µs, or 0 to open; the reason, for a person
-- Reply  the instant at which the block ends, µs; 0 when there is none
-- Cost   O(1)

read_meta()
local span = tonumber(ARGV[own])
if span == 0 then
  if m.closed > 0 then
    begin()
    call('HDEL', META, 'until', 'why')
    m.closed = 0
    touch()
  end
  return 0
end
begin()
call('HINCRBY', META, 'blocks', '1')
if now + span > m.closed then
  m.closed = now + span
  call('HSET', META, 'until', m.closed, 'why', ARGV[own + 1])
end
touch()
return m.closed
