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
local most, page = tonumber(ARGV[own]), 500 -- so many are read in one call
for l = 2, 1, -1 do
  if m.sum[l] > 0 then
    local first = waiter(call('ZRANGE', LINE[l], '0', '0')[1]).since
    oldest = oldest == 0 and first or math.min(oldest, first)
    for from = 0, most - 1, page do
      local names = call('ZRANGE', LINE[l], from, math.min(from + page, most) - 1)
      if not names[1] then
        break
      end
      for i, record in ipairs(call('HMGET', WAIT, unpack(names))) do
        local cost, promise, since = match(record, '^%d %d+ (%d+) (%d+) (%d+)')
        local n = #r
        r[n + 1], r[n + 2], r[n + 3], r[n + 4], r[n + 5] = l, names[i], tonumber(cost), tonumber(promise), tonumber(since)
      end
    end
  end
end
r[6] = oldest
return r
