-- meta: what only a quota has that was blocked, refunded, or made somebody wait.
-- The state says when there is none of it; then nothing of this is read.

local WAIT, DUE = KEYS[5], KEYS[6]

-- m.sum and m.seq are per class: units that wait, and the last place given; m.far
-- is the latest deadline; m.closed the end of a block. m.gone and m.cap are per
-- log: refunded units, and the last node of their tree. All are 0 when there is none.
local function read_meta()
  local r = {}
  if cold == 1 then
    r = call('HMGET', META, 'until', 'sum1', 'sum2', 'seq1', 'seq2', 'far', 'gone1', 'gone2', 'cap1', 'cap2', 'v')
  end
  for i = 1, 10 do
    r[i] = tonumber(r[i] or 0)
  end
  m = {closed = r[1], sum = {r[2], r[3]}, seq = {r[4], r[5]}, far = r[6],
       gone = {r[7], r[8]}, cap = {r[9], r[10]}, known = r[11], lost = cold == 1 and not r[11]}
  if m.sum[1] + m.sum[2] > 0 then
    local line = {WAIT, DUE}
    for c = 1, 2 do
      if m.sum[c] > 0 then
        line[#line + 1], line[#line + 2] = KEYS[6 + c], KEYS[8 + c]
      end
    end
    if call('EXISTS', unpack(line)) < #line then -- dropped by a server short of memory
      m.lost, m.sum, m.seq, m.far = true, {0, 0}, {0, 0}, 0
    end
  end
end

-- begin is called before the first write. Where scalars are gone, what they speak
-- of goes too: without meta the line starts empty, without state the log. And
-- without one of its keys the line starts empty too.
local function begin()
  if not state then
    call('DEL', KEYS[3], KEYS[4], KEYS[11], KEYS[12])
    call('HDEL', META, 'rebased')
    m.gone, m.cap = {0, 0}, {0, 0}
    state = ''
  end
  if m.lost then
    call('DEL', unpack(KEYS, 5, 10))
    call('HDEL', META, 'sum1', 'sum2', 'seq1', 'seq2', 'far')
    m.lost = false
  end
end

-- touch writes the state and gives every key its time to live again. It ends each
-- script that wrote, but for the grants that need nothing of meta.
local function touch()
  local gone, line = m.gone[1] + m.gone[2] > 0, m.sum[1] + m.sum[2] > 0
  cold = (gone or line or m.closed + MARGIN > now) and 1 or 0
  if m.known or cold == 1 then
    call('HSET', META, 'v', VERSION, 'gone1', m.gone[1], 'gone2', m.gone[2], 'cap1', m.cap[1], 'cap2', m.cap[2])
  end
  local far = math.max(m.far, m.closed)
  if far > now then
    life = format('%.0f', math.max(tonumber(life), (far - now + MARGIN) / 1000))
  end
  save()
  call('PEXPIRE', META, life)
  call('PEXPIRE', SERIES, SERIES_TTL)
  if n > first then
    call('PEXPIRE', YOUNG, ARGV[3])
  end
  if first > old then
    call('PEXPIRE', OLDER, ARGV[3])
  end
  if line then
    for k = 5, 10 do
      call('PEXPIRE', KEYS[k], life)
    end
  end
end

-- gone_to is how many units were refunded of the places up to p. A log that has
-- expired took its holes along: nothing in it is counted, and p is past it.
local function gone_to(p)
  local a, b = gen + 1, 2 - gen -- the young log's, the older one's
  if p == n then
    return m.gone[1] + m.gone[2]
  elseif p > first then
    return m.gone[b] + tree_sum(YOUNG, HOLE, p - first, m.cap[a], m.gone[a])
  elseif p == first then
    return m.gone[b]
  elseif p > old then
    return tree_sum(OLDER, HOLE, p - old, m.cap[b], m.gone[b])
  end
  return 0
end

local function floor_place(w)
  return w.place < 0 and -1 - w.place or w.place
end

-- measure takes refunds off what windows count.
local function measure()
  local gone = m.gone[1] + m.gone[2]
  for _, w in ipairs(windows) do
    w.used = total - w.sum
    if gone > 0 then
      w.gone = gone_to(floor_place(w))
      w.used = w.used - (gone - w.gone)
    end
  end
end
