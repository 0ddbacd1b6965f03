-- running: the keys, clock and parts that the scripts of one running limit
-- share. It stands before the script itself.
--
-- KEYS   1 meta  hash    until, why (block), blocks (how often), limit (as last asked with)
--        2 held  zset    instant at which the lease ends -> holder
--        3 line  zset    instant of first asking -> holder that waits
--        4 due   zset    instant at which a place is forgotten -> holder, in line or past
--        5 past  hash    holder -> instant of first asking, of one that had its
--                        turn here and was refused by another limit: it is no
--                        longer in the line, and comes back to its old place
-- ARGV   1 the time in µs, or '' for the server's own
--        2 grace, µs
--        then what the script itself takes
-- Instants are µs. A lease that ends at t is held while now < t.
-- Cost   O(log n), and what has ended.

local META, HELD, LINE, DUE, PAST = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local call = redis.call
local format = string.format

local FARTHEST = 86400000000  -- who would wait longer is told to ask again after a day, µs
local TTL = '90000000'        -- outlives all leases and places, which end within a day and a grace, ms
local META_TTL = 2592000000   -- 30 days, ms
local MOST = 100000           -- places in a line
local MANY = 64               -- looked at when somebody is to be named
local ALL = 1000              -- the same, when a block ends
local AGAIN = 2000000         -- one that was named and has not come by then is named again, µs

local now
if ARGV[1] == '' then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  now = tonumber(ARGV[1])
end
local grace = tonumber(ARGV[2])

local meta = call('HMGET', META, 'until', 'limit')
local closed, limit = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
call('ZREMRANGEBYSCORE', HELD, '-inf', now)
local running = call('ZCARD', HELD)
local places = call('ZCARD', DUE) -- in line and past
local waiting = 0                 -- in line

-- forget takes holders, who wait or have been, out of all that knows of them but their leases.
local function forget(holders)
  waiting = waiting - call('ZREM', LINE, unpack(holders))
  places = places - call('ZREM', DUE, unpack(holders))
  call('HDEL', PAST, unpack(holders))
end

if places > 0 then
  waiting = call('ZCARD', LINE)
  for _ = 1, 50 do
    local dead = call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', '0', '200')
    if #dead > 0 then
      forget(dead)
    end
    if #dead < 200 then
      break
    end
  end
end

-- room is how many could take a lease now, the line before newcomers.
local function room()
  if closed > now then
    return 0
  end
  return limit == 0 and ALL or limit - running
end

-- ring names those in line whose turn it is, and expects them from now on: each
-- once, and again when it does not come; with all set, every one of them. It
-- looks at the first in line, no further than most.
local function ring(all, most)
  local free = math.min(room(), waiting, most or MANY)
  if free <= 0 then
    return {}
  end
  local rung = {}
  local first = call('ZRANGE', LINE, '0', free - 1)
  for i, deadline in ipairs(call('ZMSCORE', DUE, unpack(first))) do
    local expected = deadline and tonumber(deadline) - grace or now + 1
    if expected > now then
      call('ZADD', DUE, now + grace, first[i])
    end
    if all or expected > now or expected <= now - AGAIN then
      rung[#rung + 1] = first[i]
    end
  end
  return rung
end

-- keep gives meta its time to live again; a block may end later than that.
local function keep()
  call('PEXPIRE', META, format('%.0f', math.max(META_TTL, (closed - now) / 1000 + META_TTL)))
end

-- touch gives all keys their time to live again.
local function touch()
  keep()
  call('PEXPIRE', HELD, TTL)
  if places > 0 then
    call('PEXPIRE', LINE, TTL)
    call('PEXPIRE', DUE, TTL)
    call('PEXPIRE', PAST, TTL)
  end
end

-- note writes what is to be known of the limit itself.
local function note(...)
  call('HSET', META, ...)
  keep()
end
