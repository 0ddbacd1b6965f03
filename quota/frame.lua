-- frame: the keys, arguments, clock and scalars that every script of a quota
-- shares. It stands before the other parts and the script itself.
--
-- KEYS   1 meta            hash    scalars: block, counters, where the lines stand
--        2 log             zset    stamp -> units charged so far, this entry's among them
--        3 ids:0, 4 ids:1  hash    charge ID -> "stamp cost", two generations
--        5 holes           hash    refunded units by place in the log (a tree)
--        6 wait            hash    charge ID -> "class place cost promise since refusals"
--        7 due             zset    deadline (promise + grace) -> charge ID
--        8, 9 line:*       zset    place -> charge ID; scheduled, interactive
--        10, 11 sums:*     hash    units that wait, by place (a tree)
--        12 series         hash    quarter of an hour -> the counters as it began
-- ARGV   1 the time in µs, or '' for the server's own
--        2 how long the log and the IDs are kept, µs
--        3 grace, µs    4 reserve, units    5 number of windows
--        per window: limit, and a span in µs or a calendar's edges "e1,e2,…" in µs
--        then what the script itself takes, from ARGV[own] on
-- Numbers go to redis.call as they are: it writes all digits of an integer.
-- Lua's own tostring and .. do not, so texts are made by string.format. Constant
-- arguments are texts, which saves the server their conversion.

local META, LOG, HOLES, WAIT, DUE = KEYS[1], KEYS[2], KEYS[5], KEYS[6], KEYS[7]
local SCHEDULED, INTERACTIVE = 1, 2

local call = redis.call
local format, match = string.format, string.match

local MARGIN = 60000000      -- kept longer than need be, µs: a clock may step back
local META_TTL = '2592000000' -- counters of a quota at rest are kept 30 days, ms

local now
if ARGV[1] == '' then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  now = tonumber(ARGV[1])
end
local keep, grace, reserve = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local own = 6 + 2 * ARGV[5]

-- m holds the scalars of meta. m.sum and m.seq are per class: units that wait,
-- and the last place given; m.far is the latest deadline. All are 0 when nobody
-- waits. m.slot is the newest quarter of an hour in series. m.gen counts the generations of IDs, m.since is when this one began.
local m

local function read_meta()
  local r = call('HMGET', META, 'v', 'until', 'gen', 'since', 'holes', 'sum1', 'sum2', 'slot')
  m = {fresh = not r[1], closed = tonumber(r[2] or 0),
       gen = tonumber(r[3] or 2), since = tonumber(r[4] or 0),
       holes = tonumber(r[5] or 0), off = 0, cap = 0, slot = tonumber(r[8] or 0),
       sum = {tonumber(r[6] or 0), tonumber(r[7] or 0)}, seq = {0, 0}, far = 0}
  if m.holes > 0 then
    r = call('HMGET', META, 'off', 'cap')
    m.off, m.cap = tonumber(r[1]), tonumber(r[2])
  end
  if m.sum[1] + m.sum[2] > 0 then
    r = call('HMGET', META, 'seq1', 'seq2', 'far')
    m.seq, m.far = {tonumber(r[1] or 0), tonumber(r[2] or 0)}, tonumber(r[3] or 0)
  end
end

-- begin is called before the first write: a quota whose scalars are gone starts
-- with empty lines and no holes. What it had charged stands in the log.
local function begin()
  if m.fresh then
    m.gen = call('EXISTS', KEYS[3], KEYS[4]) == 0 and 1 or 2
    m.fresh, m.since = false, now
    call('DEL', unpack(KEYS, 5))
    call('HSET', META, 'v', '1', 'gen', m.gen, 'since', now)
  end
end

-- touch gives every key its time to live again. It ends each script that wrote.
local function touch()
  local ms = (keep + MARGIN) / 1000
  local ttl = format('%.0f', ms)
  call('PEXPIRE', LOG, ttl)
  call('PEXPIRE', KEYS[3], ttl)
  if m.gen > 1 then
    call('PEXPIRE', KEYS[4], ttl)
  end
  if m.holes > 0 then
    call('PEXPIRE', HOLES, ttl)
  end
  local far = math.max(m.far, m.closed) - now
  if far <= 0 then
    call('PEXPIRE', META, META_TTL)
    return
  end
  call('PEXPIRE', META, format('%.0f', math.max(tonumber(META_TTL), (far + MARGIN) / 1000)))
  if m.far > 0 then
    ttl = format('%.0f', math.max(ms, (m.far - now + MARGIN) / 1000))
    for k = 6, 11 do
      call('PEXPIRE', KEYS[k], ttl)
    end
  end
end

-- ids is the key of a generation. The younger of the two takes new IDs.
local function ids(gen)
  return KEYS[4 - gen % 2]
end

-- find_id gives what was charged under an ID that is still remembered, with its
-- stamp; nothing when there is none.
local function find_id(name)
  for g = m.gen, math.max(m.gen - 1, 1), -1 do
    local r = call('HGET', ids(g), name)
    if r then
      local stamp, cost = match(r, '^(%d+) (%d+)$')
      stamp = tonumber(stamp)
      if stamp + keep > now then
        return tonumber(cost), stamp
      end
    end
  end
end

-- note_id remembers a charge. When the older generation holds nothing that must
-- be remembered, also if the clock steps back, it goes as a whole, and the younger
-- becomes the older.
local function note_id(name, stamp, cost)
  if stamp - m.since >= keep + MARGIN then
    m.gen, m.since = m.gen + 1, stamp
    call('UNLINK', ids(m.gen))
    call('HSET', META, 'gen', m.gen, 'since', m.since)
  end
  call('HSET', ids(m.gen), name, format('%.0f %.0f', stamp, cost))
end
