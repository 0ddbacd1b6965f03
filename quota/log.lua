-- log: what was charged, and how much of it each window still counts.
--
-- An entry is a stamp and the units charged up to and with it. So what a window
-- counts is the newest entry's total less that of the last entry that has left
-- it, its floor: the state remembers it with the stamp of the entry after it, and
-- only when that leaves too is it sought, onward from where it was. Entries have
-- places 1, 2, 3, …; the log holds them by CHUNK, a chunk a field: the total before
-- them, then stamp and total of each. Stamps are distinct and rise, also when the
-- clock does not. A place whose chunk is gone was so old that nobody counts it.
-- Cost: O(1) a window, O(log n) when entries have left.

local tail = state and sub(state, HEADLEN + 32 * given + 1) or ''
local out, mine = {}, {} -- what is to be written to the young log; IDs and places among it
local chunks = {}        -- read so far, by number; the older log's from -1 down
local m                  -- what meta says; meta.lua reads it

-- entry gives the stamp at a place, the total up to it and the one before it; 0
-- alone when it is gone.
local function entry(p)
  local i = p - 1 - (p > kept and kept or p > first and first or old)
  if i < 0 then
    return 0
  end
  if p > kept then
    local stamp, sum = take('<dd', tail, i * 16 + 1)
    return stamp, sum, i > 0 and take('<d', tail, i * 16 - 7) or edge
  end
  local k = (i - i % CHUNK) / CHUNK
  local slot = p > first and k or -1 - k
  local c, at = chunks[slot], (i % CHUNK) * 16 + 1
  if c == nil then
    c = call('HGET', p > first and YOUNG or OLDER, '\t' .. k)
    chunks[slot] = c
  end
  if not c or #c < at + 23 then
    return 0
  end
  local before, stamp, sum = take('<ddd', c, at)
  return stamp, sum, before
end

-- seek finds a window's floor: the last entry at or before cut.
local function seek(w)
  if last <= w.cut or n == old then
    w.place, w.stamp, w.sum, w.next = n, last, total, NEVER
    return
  end
  local lo, hi, step = w.place, n, 1
  if w.stamp > w.cut or lo < old or lo >= n then
    lo, w.stamp = old, 0
  end
  while lo + step < hi do
    local stamp = entry(lo + step)
    if stamp > w.cut then
      hi = lo + step
    else
      lo, w.stamp, step = lo + step, stamp, step * 2
    end
  end
  while hi - lo > 1 do
    local mid = math.floor((lo + hi) / 2)
    local stamp = entry(mid)
    if stamp > w.cut then
      hi = mid
    else
      lo, w.stamp = mid, stamp
    end
  end
  local stamp, _, before = entry(hi)
  w.place, w.sum, w.next = lo, before, stamp
end

-- A window counts the stamps after cut. A calendar's is remembered as its day, from
-- the first instant to the next day's, and a place below 0: -1 less the floor's. fault is for the scripts that need them. used holds no refunds yet: measure takes them off.
local windows, fault = {}, nil
local edges_at = 16 * count + 33 -- where those of the next calendar window stand in ARGV[2]
for i = 1, count do
  local limit, span = take('<dd', ARGV[2], 16 * i + 17)
  local w = {limit = limit, span = span, cut = now - span, edges = false, place = old,
             stamp = 0, sum = base, next = 0, used = 0, gone = 0, held = 0}
  if span == 0 then
    local size = take('<d', ARGV[2], edges_at)
    w.edges = {take('<' .. string.rep('d', size), ARGV[2], edges_at + 8)}
    w.edges[size + 1] = nil -- where they end
    edges_at = edges_at + 8 + 8 * size
    local k = 0
    while k < size and w.edges[k + 1] <= now do
      k = k + 1
    end
    if k == 0 or k == size then
      fault = redis.error_reply('CALENDAR the edges given do not hold the time of the server')
      w.cut = now
    else
      w.span, w.cut = w.edges[k + 1] - w.edges[k], w.edges[k] - 1
    end
  end
  if i <= given then
    w.stamp, w.next, w.sum, w.place = take('<dddd', state, 81 + 32 * i)
  end
  if w.edges then
    if w.place >= 0 or w.stamp ~= w.cut + 1 then
      w.place, w.stamp = old, 0
      seek(w)
      w.place = -1 - w.place
    end
    w.stamp, w.next = w.cut + 1, w.cut + 1 + w.span
  elseif w.place < 0 or w.stamp > w.cut or w.next <= w.cut then
    seek(w)
  end
  -- The reserve is kept in the windows that are larger than it.
  w.used, w.held = total - w.sum, reserve < w.limit and reserve or 0
  windows[i] = w
end

-- chunked is the tail as a field of the young log.
local function chunked()
  local k = (kept - first - (kept - first) % CHUNK) / CHUNK
  chunks[k] = pack('<d', edge) .. tail
  out[#out + 1], out[#out + 2] = '\t' .. k, chunks[k]
  kept, edge, tail = n, total, ''
end

-- flush writes what is new to the young log.
local function flush()
  if out[1] then
    call('HSET', YOUNG, unpack(out))
    call('PEXPIRE', YOUNG, ARGV[3])
    out = {}
  end
end

-- save writes the new entries and the state.
local function save()
  flush()
  local floors = ''
  for i = 1, #windows do
    local w = windows[i]
    floors = floors .. pack('<dddd', w.stamp, w.next, w.sum, w.place)
  end
  call('SET', STATE, pack(HEAD, total, last, n, edge, VERSION, cold, gen, first, begun, old, base, since, turns, #windows)
    .. floors .. tail, 'PX', life)
end
