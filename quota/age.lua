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
  local holes = m.gone[1] + m.gone[2] > 0
  local lo, hi, step = floor_place(w), n, 1
  local function left(p)
    local _, sum = entry(p)
    return (sum or w.sum) - w.sum - (holes and gone_to(p) - w.gone or 0)
  end
  while lo + step < hi and left(lo + step) < need do
    lo, step = lo + step, step * 2
  end
  hi = math.min(hi, lo + step)
  while hi - lo > 1 do
    local mid = math.floor((lo + hi) / 2)
    if left(mid) >= need then
      hi = mid
    else
      lo = mid
    end
  end
  return (entry(hi))
end

-- rebase takes from all totals what came before the first entry, so that they stay
-- below 2^53. It walks the log, once in 2^52 units.
local function rebase()
  save()
  local off = base
  local function less(s, from, step)
    local v = {take('<' .. string.rep('d', #s / 8), s)}
    v[#v] = nil -- what follows the numbers read
    for j = from, #v, step do
      v[j] = v[j] - off
    end
    return pack('<' .. string.rep('d', #v), unpack(v))
  end
  for key, size in pairs({[YOUNG] = kept - first, [OLDER] = first - old}) do
    for k = 0, math.ceil(size / CHUNK) - 1 do
      local c = call('HGET', key, '\t' .. k)
      if c then
        call('HSET', key, '\t' .. k, less(c, 1, 2))
      end
    end
  end
  tail, chunks = less(tail, 2, 2), {}
  call('HINCRBY', META, 'rebased', off)
  total, begun, edge, base = total - off, begun - off, edge - off, 0
  for _, w in ipairs(windows) do
    w.sum = w.sum - off
  end
  save()
end
