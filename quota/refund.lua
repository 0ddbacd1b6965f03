-- refund: gives back what an ID was charged, once, and takes it out of the line.
--
-- KEYS   as in frame.lua
-- ARGV   as in frame.lua, then charge ID
-- Reply  units that some window counted and now does not; 0 when there are none
-- Cost   O(log n)

if fault then
  return fault
end
local id = ARGV[own]
read_meta()
if m.sum[1] + m.sum[2] > 0 and call('HEXISTS', WAIT, id) == 1 then
  begin()
  leave_line({id})
  touch()
end
if not state then
  return 0
end
local p = tonumber(call('HGET', YOUNG, id) or call('HGET', OLDER, id) or nil)
local stamp, sum, before = 0, 0, 0
if p then
  stamp, sum, before = entry(p)
end
if stamp + keep <= now then
  return 0
end
begin()
call('HDEL', YOUNG, id)
call('HDEL', OLDER, id)
if now >= turns then
  begin_slot(n, total)
end
call('HINCRBY', META, 'refunds', '1')

-- An entry that no window counts is a hole too: a window may be made longer.
local cost, log, g = sum - before, p > first and YOUNG or OLDER, p > first and gen + 1 or 2 - gen
local at = p - (p > first and first or old)
m.cap[g] = math.max(m.cap[g], 1)
while m.cap[g] < at do
  m.cap[g] = m.cap[g] * 2
  if m.gone[g] > 0 then
    call('HSET', log, HOLE .. m.cap[g], m.gone[g]) -- the tree grows: its new last node holds all before it
  end
end
tree_add(log, HOLE, {{at, cost}}, m.cap[g])
m.gone[g] = m.gone[g] + cost
call('HINCRBY', META, 'back', cost)
local label = match('\n' .. (call('HGET', log, label_field(p)) or ''), format('\n%.0f ([^\n]+)', p))
if label then
  note('-', label, cost)
end
touch()
for _, w in ipairs(windows) do
  if stamp > w.cut then
    return cost
  end
end
return 0
