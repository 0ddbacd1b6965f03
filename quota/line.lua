-- line: those that were refused, in order of asking, a line for each class. Each
-- waits with its cost and its own promised instant. The line is the log's
-- continuation: a waiter counts as an entry at its promise. So the next promise
-- is found as a Retry-After is, by sums, with no walk: O(log n).

local SCHEDULED, INTERACTIVE = 1, 2
local LINE = {KEYS[7], KEYS[8]}
local SUMS = {KEYS[9], KEYS[10]}
local LATER = '\t'      -- before a charge ID, which never begins so: what follows it, where that is not its promise
local SLEEPS = 1000000 -- promises of one instant follow each other by µs; by more than a second, those before sleep

-- waiter reads the place that an ID has in the line. Those behind it count on follows,
-- which rises; that is the promise itself, but where somebody before it sleeps.
local function waiter(name)
  local found = call('HMGET', WAIT, name, LATER .. name)
  local r = found[1]
  if r then
    -- Before there were refusals in it, a record ended with since.
    local c, seq, cost, promise, since, refusals = match(r, '^(%d) (%d+) (%d+) (%d+) (%d+) ?(%d*)$')
    return {class = tonumber(c), seq = tonumber(seq), cost = tonumber(cost),
            promise = tonumber(promise), since = tonumber(since), refusals = tonumber(refusals) or 1,
            follows = tonumber(found[2] or promise), apart = found[2]}
  end
end

-- leave_line takes waiters, given by ID, out of the line.
local function leave_line(names)
  local gone, left = {{}, {}}, {{}, {}}
  for i, r in ipairs(call('HMGET', WAIT, unpack(names))) do
    if r then
      local c, seq, cost = match(r, '^(%d) (%d+) (%d+)')
      c, cost = tonumber(c), tonumber(cost)
      gone[c][#gone[c] + 1] = {tonumber(seq), -cost}
      left[c][#left[c] + 1] = names[i]
      m.sum[c] = m.sum[c] - cost
    end
  end
  for c = 1, 2 do
    if #left[c] > 0 then
      if m.sum[c] == 0 then
        call('DEL', LINE[c], SUMS[c])
        m.seq[c] = 0
      else
        call('ZREM', LINE[c], unpack(left[c]))
        tree_add(SUMS[c], '', gone[c], tree_top(m.seq[c]))
      end
      call('HSET', META, 'sum' .. c, m.sum[c], 'seq' .. c, m.seq[c])
    end
  end
  local apart = {}
  for i, name in ipairs(names) do
    apart[i] = LATER .. name
  end
  call('HDEL', WAIT, unpack(names))
  call('HDEL', WAIT, unpack(apart))
  call('ZREM', DUE, unpack(names))
  if m.far > 0 and m.sum[1] + m.sum[2] == 0 then
    m.far = 0
    call('HSET', META, 'far', '0')
  end
end

-- sweep drops the waiters whose grace is over, up to 1000 in one call. It says
-- whether more are left.
local function sweep()
  if m.sum[1] + m.sum[2] == 0 then
    return false
  end
  local first = call('ZRANGE', DUE, '0', '0', 'WITHSCORES')
  if first[2] and tonumber(first[2]) > now then
    return false
  end
  local newest = call('ZREVRANGE', DUE, '0', '0', 'WITHSCORES')
  if not newest[2] or tonumber(newest[2]) <= now then
    call('UNLINK', WAIT, DUE, LINE[1], LINE[2], SUMS[1], SUMS[2])
    m.sum, m.seq, m.far = {0, 0}, {0, 0}, 0
    call('HSET', META, 'sum1', '0', 'sum2', '0', 'seq1', '0', 'seq2', '0', 'far', '0')
    return false
  end
  for _ = 1, 5 do
    local names = call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', '0', '200')
    if #names > 0 then
      leave_line(names)
    end
    if #names < 200 then
      return false
    end
  end
  return call('ZCOUNT', DUE, '-inf', now) > 0
end

-- promise_at is what follows the waiter with whom the units that wait before
-- a place of class c reach target. Interactive waiters come before scheduled ones.
local function promise_at(c, target)
  local l = INTERACTIVE
  if c == SCHEDULED then
    if target > m.sum[INTERACTIVE] then
      l = SCHEDULED
      target = target - m.sum[INTERACTIVE]
    end
  end
  local seq = tree_find(SUMS[l], '', target, tree_top(m.seq[l]))
  local name = call('ZRANGEBYSCORE', LINE[l], seq, seq, 'LIMIT', '0', '1')[1]
  return waiter(name).follows
end

-- promise is the instant at which cost units will be free after the units that
-- wait before it: in each window so much must have left, of the log or of the
-- waiters once they are granted. seq is the place, nil for the end of the line.
-- The second answer rises along the line, from interactive to scheduled too: those behind count on it. They differ where
-- those before it were promised later than need be by now (a block was lifted, units
-- were given back) and sleep: if it fits into one limit with all of them, it need not
-- wait for their coming.
local function promise(c, before, cost, seq)
  local at, alone = math.max(now + 1, last + 1, m.closed), true
  for _, w in ipairs(windows) do
    local need = w.used + before + cost + (c == SCHEDULED and w.held or 0) - w.limit
    if need > w.used then
      alone = false
      at = math.max(at, release(w, math.max(now, promise_at(c, need - w.used))))
    elseif need > 0 then
      at = math.max(at, release(w, leaving(w, need)))
    end
  end
  local ahead
  if seq then
    ahead = call('ZREVRANGEBYSCORE', LINE[c], seq - 1, '-inf', 'LIMIT', '0', '1')
  else
    ahead = call('ZREVRANGE', LINE[c], '0', '0')
  end
  local told = at
  if ahead[1] then
    at = math.max(at, waiter(ahead[1]).follows + 1)
  end
  if c == SCHEDULED and m.sum[INTERACTIVE] > 0 then
    at = math.max(at, waiter(call('ZREVRANGE', LINE[INTERACTIVE], '0', '0')[1]).follows + 1)
  end
  if not alone or at <= told + SLEEPS then
    told = at
  end
  return told, at
end

-- stand writes a waiter's record and its deadline.
local function stand(name, w)
  call('HSET', WAIT, name, format('%d %.0f %.0f %.0f %.0f %d', w.class, w.seq, w.cost, w.promise, w.since, w.refusals))
  if w.follows ~= w.promise then
    call('HSET', WAIT, LATER .. name, w.follows)
  elseif w.apart then
    call('HDEL', WAIT, LATER .. name)
  end
  call('ZADD', DUE, w.promise + grace, name)
  if w.promise + grace > m.far then
    m.far = w.promise + grace
    call('HSET', META, 'far', m.far)
  end
end

-- join puts a new waiter at the end of its line.
local function join(name, w)
  local c = w.class
  local seq = m.seq[c] + 1
  local top = tree_top(seq)
  if seq > 1 and top == 2 * (seq - 1) then
    call('HSET', SUMS[c], top, m.sum[c]) -- the tree grows: its new last node holds all before it
  end
  tree_add(SUMS[c], '', {{seq, w.cost}}, top)
  m.seq[c], m.sum[c] = seq, m.sum[c] + w.cost
  call('HSET', META, 'sum' .. c, m.sum[c], 'seq' .. c, seq)
  call('ZADD', LINE[c], seq, name)
  w.seq = seq
  stand(name, w)
end
