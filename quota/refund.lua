-- refund: gives back what an ID was charged, once, and takes it out of the line.
--
-- KEYS   as in frame.lua
-- ARGV   as in frame.lua, then charge ID
-- Reply  units that some window counted and now does not; 0 when there are none
-- Cost   O(log n)

local id = ARGV[own]
local fault = read_windows()
if fault then
  return fault
end
read_meta()
if m.fresh then
  return 0
end
if m.sum[1] + m.sum[2] > 0 and call('HEXISTS', WAIT, id) == 1 then
  leave_line({id})
  touch()
end
local cost, stamp = find_id(id)
if not cost then
  return 0
end
-- Of both: an earlier charge under it, forgotten since, must not be found when the clock steps back.
call('HDEL', KEYS[3], id)
call('HDEL', KEYS[4], id)
if now >= (m.slot + 1) * SLOT then
  begin_slot()
end
call('HINCRBY', META, 'refunds', '1')
call('HINCRBY', META, 'back', cost)

local counted = false
for _, w in ipairs(windows) do
  counted = counted or stamp > w.cut
end
-- An entry that no window counts is a hole too: a window may be made longer.
-- The first entry of the log only says where the sums begin.
local entry = call('ZRANGEBYSCORE', LOG, stamp, stamp, 'LIMIT', 0, 1)[1]
local at = entry and m.off + call('ZRANK', LOG, entry)
if at and at > m.off then
  m.cap = math.max(m.cap, 1)
  while m.cap < at do
    m.cap = m.cap * 2
    if m.holes > 0 then
      call('HSET', HOLES, m.cap, m.holes) -- the tree grows: its new last node holds all before it
    end
  end
  tree_add(HOLES, {{at, cost}}, m.cap)
  call('HSET', HOLES, format('c%.0f', at), cost)
  m.holes = m.holes + cost
  call('HSET', META, 'holes', m.holes, 'off', m.off, 'cap', m.cap)
else
  counted = false
end
touch()
return counted and cost or 0
