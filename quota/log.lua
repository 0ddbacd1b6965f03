-- log: what was charged, and how much of it each window still counts.
--
-- An entry is a stamp and the units charged up to and with it. So what a window
-- counts is the newest entry's sum less that of the last entry that has left
-- it: two reads, whatever the number of entries and their weight. The first
-- entry only says where the sums begin. Stamps are distinct and rise, also when
-- the clock does not. Units given back stay in the sums, and are holes: a tree
-- over places in the log, m.holes units of them in all, is subtracted.
-- Cost: O(log n) a window.

local FULL = 4503599627370496 -- 2^52: sums must not come to 2^53, where digits are lost

local total, last  -- units charged so far, and the newest stamp
local windows = {} -- {limit, used, cut, floor, span | edges, start}

-- A window counts the stamps after cut.
local function read_windows()
  for i = 6, own - 2, 2 do
    local w = {limit = tonumber(ARGV[i])}
    local span = tonumber(ARGV[i + 1])
    if span then
      w.span, w.cut = span, now - span
    else
      w.edges = {}
      for e in string.gmatch(ARGV[i + 1], '%d+') do
        w.edges[#w.edges + 1] = tonumber(e)
      end
      local k = 0
      while k < #w.edges and w.edges[k + 1] <= now do
        k = k + 1
      end
      if k == 0 or k == #w.edges then
        return redis.error_reply('CALENDAR the edges given do not hold the time of the server')
      end
      w.span, w.cut = w.edges[k + 1] - w.edges[k], w.edges[k] - 1
    end
    windows[#windows + 1] = w
  end
end

local function measure()
  local e = call('ZREVRANGE', LOG, '0', '0', 'WITHSCORES')
  total, last = tonumber(e[1] or 0), tonumber(e[2] or 0)
  for _, w in ipairs(windows) do
    w.used, w.floor, w.gone = 0, '0', 0 -- as append begins an empty log
    if total > 0 then
      local f = call('ZREVRANGEBYSCORE', LOG, w.cut, '-inf', 'LIMIT', '0', '1')
      if not f[1] then
        f = call('ZRANGE', LOG, '0', '0')
      end
      w.floor = f[1]
      w.used = total - tonumber(w.floor)
      if m.holes > 0 then
        w.gone = tree_sum(HOLES, m.off + call('ZRANK', LOG, w.floor), m.cap, m.holes)
        w.used = w.used - (m.holes - w.gone)
      end
    end
  end
end

-- trim forgets some of what no window can count any more.
local function trim()
  local old = call('ZRANGEBYSCORE', LOG, '-inf', now - keep - MARGIN, 'LIMIT', '0', '64')
  local n = #old - 1 -- the last of them stays: the sums begin there
  if n < 1 then
    return
  end
  call('ZREMRANGEBYRANK', LOG, '0', n - 1)
  if m.holes == 0 then
    return
  end
  local leaves, gone, units = {}, {}, 0
  for i = 1, n do
    leaves[i] = 'c' .. (m.off + i)
  end
  for i, c in ipairs(call('HMGET', HOLES, unpack(leaves))) do
    if c then
      gone[#gone + 1] = {m.off + i, -tonumber(c)}
      units = units + tonumber(c)
    end
  end
  tree_add(HOLES, gone, m.cap)
  call('HDEL', HOLES, unpack(leaves))
  m.off, m.holes = m.off + n, m.holes - units
  if m.holes == 0 then
    call('DEL', HOLES)
    m.off, m.cap = 0, 0
  end
  call('HSET', META, 'holes', m.holes, 'off', m.off, 'cap', m.cap)
end

-- append writes one entry of that cost, and gives its stamp.
local function append(cost)
  if total == 0 then
    call('ZADD', LOG, '0', '0')
    if m.holes > 0 then
      call('DEL', HOLES)
      m.holes, m.off, m.cap = 0, 0, 0
      call('HSET', META, 'holes', '0')
    end
  end
  total = total + cost
  last = math.max(now, last + 1)
  call('ZADD', LOG, last, format('%.0f', total))
  return last
end
