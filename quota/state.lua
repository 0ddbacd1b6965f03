-- state: what a person wants to see of a quota.
--
-- KEYS   as in frame.lua
-- ARGV   as in frame.lua, then how many waiters of each class to show
-- Reply  {now, next release or 0, blocked until or 0, why,
--         {counters, as seen.lua has them}, first asked of the longest waiting or 0,
--         per class scheduled, interactive: waiters, units,
--         each window's span, each window's used,
--         waiters: (class, id, cost, promise, since) each}; instants in µs
-- Cost   O(log n) and the waiters shown

if fault then
  return fault
end
read_meta()
sweep()
measure()

local release_at, oldest = 0, 0
for _, w in ipairs(windows) do
  if w.used > 0 then
    local at = release(w, leaving(w, 1))
    if release_at == 0 or at < release_at then
      release_at = at
    end
  end
end
local r = {now, release_at, 0, '', counters(), 0}
if m.closed > now then
  r[3], r[4] = m.closed, call('HGET', META, 'why') or ''
end
for l = 1, 2 do
  r[#r + 1] = m.sum[l] > 0 and call('ZCARD', LINE[l]) or 0
  r[#r + 1] = m.sum[l]
end
for _, w in ipairs(windows) do
  r[#r + 1] = w.span
end
for _, w in ipairs(windows) do
  r[#r + 1] = w.used
end
for l = 2, 1, -1 do
  if m.sum[l] > 0 then
    for i, name in ipairs(call('ZRANGE', LINE[l], '0', tonumber(ARGV[own]) - 1)) do
      local w = waiter(name)
      if i == 1 and (oldest == 0 or w.since < oldest) then
        oldest = w.since
      end
      for _, v in ipairs({l, name, w.cost, w.promise, w.since}) do
        r[#r + 1] = v
      end
    end
  end
end
r[6] = oldest
return r
