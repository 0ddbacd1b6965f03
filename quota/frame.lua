-- frame: the keys, arguments, clock and hot state that every script of a quota
-- shares. It stands before the other parts and the script itself.
--
-- KEYS   1 state             string  all that a grant needs to know, in one read and one write
--        2 meta              hash    what only a quota with a line, a block or refunds has; counters
--        3 log:0, 4 log:1    hash    two generations of the log: chunks of entries, charge ID -> place,
--                                    refunded units by place (a tree), labels by place
--        5 wait              hash    charge ID -> "class place cost promise since refusals"; what follows it
--        6 due               zset    deadline (promise + grace) -> charge ID
--        7, 8 line:*         zset    place -> charge ID; scheduled, interactive
--        9, 10 sums:*        hash    units that wait, by place (a tree)
--        11 series           hash    quarter of an hour -> the counters as it began, and whom its units went to
--        12 labels           hash    whom the newest quarter's units went to
--        hot.lua has fewer: it takes 11 and 12 as its 5 and 6
-- ARGV   1 the time in µs, or '' for the server's own
--        2 the quota, numbers of 8 bytes: how long the log and the IDs are kept, µs; grace, µs;
--          reserve, units; number of windows; per window limit and span, µs; per calendar window,
--          whose span is 0, how many edges follow, and those, µs
--        3 time to live of the log, ms    4 of all else, ms, longer
--        then what the script itself takes, from the fifth on
-- Errors VERSION, CALENDAR; nothing is written then.
--
-- Functions are few and late, tables are made whole and calls are counted: a grant
-- takes as long as its pieces. Constant arguments of redis.call are texts, which
-- saves the server their conversion; other numbers go as they are, and it writes
-- all digits of an integer. Lua's own tostring and .. do not: past 10^14 they round.

local STATE, META = KEYS[1], KEYS[2]

local call = redis.call
local format, match, sub = string.format, string.match, string.sub

local MARGIN = 60000000        -- kept longer than need be, µs: a clock may step back
local FULL = 4503599627370496  -- 2^52: sums must not come to 2^53, where digits are lost
local NEVER = 9007199254740991 -- later than any stamp

-- Numbers are stored and sent as doubles. miniredis has no struct; whole numbers
-- below 2^53 are all that is needed.
local struct = rawget(_G, 'struct')
if not struct then
  struct = {
    pack = function(_, ...)
      local out = ''
      for _, v in ipairs({...}) do
        local f, e = math.frexp(math.abs(v))
        local bits = v ~= 0 and (f * 2 - 1) * 4503599627370496 or 0
        local top = (v ~= 0 and (e + 1022) * 16 or 0) + (v < 0 and 32768 or 0)
        for _ = 1, 6 do
          out = out .. string.char(bits % 256)
          bits = math.floor(bits / 256)
        end
        out = out .. string.char((top + bits) % 256) .. string.char(math.floor((top + bits) / 256))
      end
      return out
    end,
    unpack = function(form, s, from)
      local out, at = {}, from or 1
      for i = 1, #form - 1 do
        local bits = 0
        for j = 5, 0, -1 do
          bits = bits * 256 + string.byte(s, at + j)
        end
        local top = string.byte(s, at + 7) * 256 + string.byte(s, at + 6)
        bits = bits + top % 16 * 281474976710656
        local sign = top < 32768 and 1 or -1
        top = top % 32768
        out[i] = top == 0 and 0 or sign * math.ldexp(1 + bits / 4503599627370496, math.floor(top / 16) - 1023)
        at = at + 8
      end
      out[#form] = at
      return unpack(out)
    end,
  }
end
local pack, take = struct.pack, struct.unpack

local now
if ARGV[1] == '' then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  now = tonumber(ARGV[1])
end
local keep, grace, reserve, count = take('<dddd', ARGV[2])
local life, own = ARGV[4], 5

-- The state: HEAD numbers, four for each window, then the tail.
--   total, last    units charged so far, and the newest stamp
--   n              place of the newest entry: they count from 1, and never again
--   edge           total before the tail
--   cold           1: meta has something to say, or there is no state yet
--   gen            which of the two logs is the young one, 0 or 1
--   first, begun   the young log holds the places after first; the total there
--   old, base      the older one holds those from there to first; the total there
--   since          stamp of the young log's first entry
--   turns          end of the quarter of an hour that series knows, µs
--   given          number of windows that follow
-- The tail is the newest entries, less than CHUNK of them, each its stamp and its
-- total. When there are CHUNK, they move to the young log.
local VERSION, HEAD, HEADLEN, CHUNK = 1, '<dddddddddddddd', 14 * 8, 8
local total, last, n, edge, cold, gen = 0, 0, 0, 0, 1, 0
local first, begun, old, base, since, turns, given = 0, 0, 0, 0, 0, 0, 0
local state, version = call('GET', STATE), VERSION
if state then
  total, last, n, edge, version, cold, gen, first, begun, old, base, since, turns, given = take(HEAD, state)
end
if version ~= VERSION then
  return redis.error_reply('VERSION the quota was written by another release, in another form')
end
local kept = n - (n - first) % CHUNK -- the place before the tail's first
local YOUNG, OLDER = KEYS[3 + gen], KEYS[4 - gen]
