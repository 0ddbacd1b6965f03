-- clock: the instant and the dice of one call. Put before every other script.
--
-- ARGV[1]  now in microseconds, or "" for the server's own clock
-- ARGV[2]  seed of the dice, 1 to 2147483646: servers seed math.random alike at every call
-- cost     O(1)

local call, format = redis.call, string.format

-- now gives the instant, asked for only by what needs it.
local instant = tonumber(ARGV[1])
local function now()
  if not instant then
    local t = call('TIME')
    instant = t[1] * 1000000 + t[2]
  end
  return instant
end

local seed = tonumber(ARGV[2])
-- dice gives a whole number from 0 to n-1 (Lehmer's generator: exact in a double).
local function dice(n)
  seed = seed * 16807 % 2147483647
  return seed % n
end

-- fraction gives a random number from 0 to just below 1, in steps that stay exact beside a whole number up to 2^33.
local function fraction()
  return dice(1048576) / 1048576
end

-- turn is a fraction too, for sets whose members are given new scores all the time: where in a cycle of 16.8 s
-- we are, and 16 ms of chance. In a pool that is asked often it puts the least recent first, and writes fall on
-- neighbours in Redis's memory, which makes them three times as fast in a big set; asked seldom it is chance.
local cycle
local function turn()
  cycle = cycle or math.floor(now() / 16)
  return (cycle + dice(1024)) % 1048576 / 1048576
end

-- exact writes a number with all its digits; Lua's own tostring keeps 14.
local function exact(n)
  return format(n % 1 == 0 and '%d' or '%.17g', n)
end

-- tied writes a score, a whole number and a fraction that breaks ties, with as many digits as the fraction is worth:
-- Redis is faster with these than with all seventeen.
local function tied(n)
  return format('%.6f', n)
end
