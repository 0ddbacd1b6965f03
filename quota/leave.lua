-- leave: takes an ID out of the line. What it was granted stays charged.
--
-- KEYS   as in frame.lua
-- ARGV   as in frame.lua, then charge ID
-- Reply  1 when it had a place, else 0
-- Cost   O(log n)

local id = ARGV[own]
read_meta()
if m.sum[1] + m.sum[2] == 0 or call('HEXISTS', WAIT, id) == 0 then
  return 0
end
begin()
leave_line({id})
touch()
return 1
