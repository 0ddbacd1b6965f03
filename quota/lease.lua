-- lease: what one or several holders want of one running limit, in order.
--
-- KEYS   as in running.lua
-- ARGV   as in running.lua, then four for each errand:
--        'acquire' holder  ttl    limit   a lease, or a place in the line; limit 0 is none
--        'extend'  holder  ttl    ''      a lease that is held ends later
--        'release' holder  ''     ''      a lease that is held ends now
--        'yield'   holder  since  keep    out of lease and line, the old place kept for so long
--        'leave'   holder  ''     ''      out of the line
-- Reply  for each errand {done 0 or 1, since, wait, position, reason, {holder, …}}
--        done      it holds the lease now; of release and leave: there was something to end
--        since     acquire: instant of first asking, µs
--        wait      acquire refused: µs until leases will have ended for this place
--        position  acquire refused: 1 = next; 0 when the line is full
--        reason    '', 'running', 'blocked'
--        holder…   those in line whose turn has come, to be woken
-- Cost   O(log n) an errand, and those who are named

local stamp = now - 1 -- of the last newcomer in this run

-- ends is the instant at which there is room for rank + 1 more, if all leases
-- that are held end when they must, and those before take theirs for ttl each.
local function ends(rank, ttl)
  local at = math.max(now + 1, closed)
  local k = running + rank + 1 - limit -- so many must end before
  if limit > 0 and k > 0 then
    local function ending(i)
      if i <= running then
        return tonumber(call('ZRANGE', HELD, i - 1, i - 1, 'WITHSCORES')[2])
      end
      local last = call('ZRANGE', HELD, '-1', '-1', 'WITHSCORES')[2]
      return math.max(now + ttl, tonumber(last or 0)) -- of one that could run now, and has not come
    end
    local most = math.max(running, limit)
    local rounds = math.max(0, math.ceil((k - most) / limit))
    at = math.max(at, ending(k - rounds * limit) + rounds * ttl)
    if rounds > 0 then
      at = math.max(at, ending(most) + (rounds - 1) * ttl)
    end
  end
  return math.min(at, now + FARTHEST)
end

local function refuse(holder, ttl, since, rank, inside)
  local at = ends(rank, ttl)
  if not inside then
    if waiting >= MOST then
      return {0, since, at - now, 0, closed > now and 'blocked' or 'running', ring()}
    end
    call('ZADD', LINE, format('%.0f', since), holder)
    waiting = waiting + 1
    call('HDEL', PAST, holder)
  end
  places = places + call('ZADD', DUE, at + grace, holder)
  return {0, since, at - now, rank + 1, closed > now and 'blocked' or 'running', ring()}
end

local function acquire(holder, ttl, lim)
  if lim ~= limit or not meta[2] then
    limit = lim -- not both in one assignment: the Lua of miniredis mixes them up
    meta[2] = lim
    note('limit', lim)
  end
  local function take(since)
    running = running + call('ZADD', HELD, 'GT', now + ttl, holder)
    return {1, since, 0, 0, '', ring()}
  end
  stamp = math.max(now, stamp + 1)
  if places == 0 and room() > 0 then
    return take(stamp)
  end
  if call('ZSCORE', HELD, holder) then
    return take(stamp) -- the lease that it has
  end

  local since, rank = nil, waiting
  local inside = waiting > 0 and call('ZSCORE', LINE, holder)
  if inside then
    since, rank = tonumber(inside), call('ZRANK', LINE, holder)
  elseif places > waiting then
    local had = call('HGET', PAST, holder)
    if had then
      since, rank = tonumber(had), call('ZCOUNT', LINE, '-inf', '(' .. had)
    end
  end
  if not since then
    if waiting > 0 then
      local last = tonumber(call('ZRANGE', LINE, '-1', '-1', 'WITHSCORES')[2])
      stamp = math.max(stamp, last + 1)
    end
    since = stamp
  end
  if room() - rank > 0 or (limit == 0 and closed <= now) then
    if places > 0 then
      forget({holder})
    end
    return take(since)
  end
  return refuse(holder, ttl, since, rank, inside)
end

local function extend(holder, ttl)
  if not call('ZSCORE', HELD, holder) then
    return {0, 0, 0, 0, '', {}}
  end
  call('ZADD', HELD, 'GT', now + ttl, holder)
  return {1, 0, 0, 0, '', {}}
end

local function release(holder)
  local n = call('ZREM', HELD, holder)
  running = running - n
  -- One that held nothing may be asking again because the answer was lost.
  return {n, 0, 0, 0, '', ring(n == 0)}
end

local function yield(holder, since, keeps)
  running = running - call('ZREM', HELD, holder)
  waiting = waiting - call('ZREM', LINE, holder)
  call('HSET', PAST, holder, format('%.0f', since))
  places = places + call('ZADD', DUE, now + keeps, holder)
  return {0, 0, 0, 0, '', ring()}
end

local function leave(holder)
  local before = places
  if places > 0 then
    forget({holder})
  end
  return {before - places, 0, 0, 0, '', {}}
end

local replies = {}
for k = 3, #ARGV, 4 do
  local what, holder, a, b = ARGV[k], ARGV[k + 1], tonumber(ARGV[k + 2]), tonumber(ARGV[k + 3])
  local r
  if what == 'acquire' then
    r = acquire(holder, a, b)
  elseif what == 'extend' then
    r = extend(holder, a)
  elseif what == 'release' then
    r = release(holder)
  elseif what == 'yield' then
    r = yield(holder, a, b)
  else
    r = leave(holder)
  end
  replies[#replies + 1] = r
end
touch()
return replies
