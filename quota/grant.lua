-- grant: the first half of charge.lua, whose head says what goes in and out. It
-- answers IDs that were charged before, and grants where there is room and nobody
-- waits. So most charges end here, before the functions of the parts that follow
-- are even made, which would be a tenth of their time.

if fault then
  return fault
end

-- The logs are asked once for all IDs.
local asked, costs, older = {}, {}, {}
for k = own, #ARGV - 2, 3 do
  local i, cost = #asked + 1, not string.find(ARGV[k + 1], '%D') and tonumber(ARGV[k + 1]) -- which alone takes 0x10 and 1e3
  if not (cost and cost >= 1 and cost < NEVER and cost % 1 == 0) then
    return redis.error_reply('COST must be a whole number from 1 to 2^53-1')
  end
  asked[i], costs[i] = ARGV[k], cost
end
local young = call('HMGET', YOUNG, unpack(asked))
if first > old then
  older = call('HMGET', OLDER, unpack(asked))
end

local labels = (#ARGV - own) % 3 == 0 and ARGV[#ARGV]
local i, places = 1, {} -- the request that is answered; places of the grants, where there are labels
local replies, refusals = {''}, 0
for i = 1, #windows do
  replies[1] = replies[1] .. pack('<d', windows[i].span)
end

local function granted(cost, at)
  local r = pack('<dd', cost, at)
  for i = 1, #windows do
    r = r .. pack('<d', windows[i].used)
  end
  replies[#replies + 1] = r
end

-- turn begins a new young log when the older one holds nothing that must be
-- remembered: that one goes as a whole, its holes too.
local function turn(stamp)
  if last + keep + MARGIN > stamp then
    if n > kept then
      chunked()
      flush()
    end
    old, base = first, begun
  else
    call('UNLINK', YOUNG)
    old, base, tail = n, total, ''
  end
  call('UNLINK', OLDER)
  YOUNG, OLDER, gen = OLDER, YOUNG, 1 - gen
  first, begun, kept, edge, chunks = n, total, n, total, {}
  if m then
    m.gone[gen + 1], m.cap[gen + 1] = 0, 0
    if old == n then
      m.gone, m.cap = {0, 0}, {0, 0}
    end
  end
end

local function grant(id, cost)
  local stamp = now > last and now or last + 1
  if n > first and stamp - since >= keep + MARGIN and not out[1] then
    turn(stamp)
  end
  if n == first then
    since = stamp
  end
  total, last, n = total + cost, stamp, n + 1
  tail, mine[id] = tail .. pack('<dd', stamp, total), n
  out[#out + 1], out[#out + 2] = id, n
  if n - kept == CHUNK then
    chunked()
  end
  for i = 1, #windows do
    local w = windows[i]
    w.used = w.used + cost
    if w.next == NEVER then
      w.next = stamp
    end
  end
  if labels then
    places[i] = n
  end
  granted(cost, stamp)
end

-- note_grants counts the units of labels, once the series has begun the quarter.
local function note_grants()
  for k, label in string.gmatch(labels, '(%d+) ([^\n]+)') do
    k = tonumber(k)
    if places[k] and note('+', label, costs[k]) then
      local at = label_field(places[k])
      call('HSET', YOUNG, at, (call('HGET', YOUNG, at) or '') .. format('%.0f %s\n', places[k], label))
    end
  end
end

-- again answers an ID that was charged before and is still remembered.
local function again(p)
  local stamp, sum, before = entry(p)
  if stamp + keep > now then
    granted(sum - before, stamp)
    return true
  end
end

local grants_before, units_before = n, total
while asked[i] and cold == 0 do
  local id, cost, class = asked[i], costs[i], ARGV[own + 3 * i - 1]
  local p = mine[id] or young[i] or older[i]
  if not (p and again(p + 0)) then
    local fits = total < FULL
    for j = 1, #windows do
      local w = windows[j]
      fits = fits and w.limit - w.used - ((class == '1' or class == '3') and w.held or 0) >= cost
    end
    if not fits then
      break
    end
    grant(id, cost)
  end
  i = i + 1
end
if not asked[i] then
  if out[1] then
    if now >= turns then
      begin_slot(grants_before, units_before)
    end
    save()
    if labels then
      note_grants()
    end
  end
  return replies
end
