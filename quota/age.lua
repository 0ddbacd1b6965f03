-- age: when what was charged leaves a window, and sums that have grown too large.
-- Cost: O(log n), but for rebase.

-- release is the instant at which an entry of that stamp leaves a window.
local function release(w, stamp)
  if not w.edges then
    return stamp + w.span
  end
  for _, e in ipairs(w.edges) do
    if e > stamp then
      return e
    end
  end
  -- Further ahead than the edges given: whole days on. Who comes then is told anew.
  local far = w.edges[#w.edges]
  return far + (math.floor((stamp - far) / 86400000000) + 1) * 86400000000
end

-- leaving is the stamp of the entry with whose leaving need units have left the
-- window (0 < need <= w.used). A look at the oldest few, then halving.
local function leaving(w, need)
  local base = tonumber(w.floor)
  local lo = call('ZRANK', LOG, w.floor)
  if m.holes == 0 then
    local few = call('ZRANGE', LOG, lo + 1, lo + 8, 'WITHSCORES')
    for i = 1, #few, 2 do
      if tonumber(few[i]) - base >= need then
        return tonumber(few[i + 1])
      end
    end
    lo = lo + #few / 2
  end
  local hi = call('ZCARD', LOG) - 1
  while hi - lo > 1 do
    local mid = math.floor((lo + hi) / 2)
    local left = tonumber(call('ZRANGE', LOG, mid, mid)[1]) - base
    if m.holes > 0 then
      left = left - (tree_sum(HOLES, m.off + mid, m.cap, m.holes) - w.gone)
    end
    if left >= need then
      hi = mid
    else
      lo = mid
    end
  end
  return tonumber(call('ZRANGE', LOG, hi, hi, 'WITHSCORES')[2])
end

-- rebase takes from all sums what came before the first entry, so that they stay
-- below 2^53. It walks the log, once in 2^52 units.
local function rebase()
  local all = call('ZRANGE', LOG, '0', '-1', 'WITHSCORES')
  local base = tonumber(all[1])
  call('DEL', LOG)
  for i = 1, #all, 2 do
    call('ZADD', LOG, all[i + 1], format('%.0f', tonumber(all[i]) - base))
  end
  total = total - base
end
