-- Looks whether this server still has what a process wrote to it last, and writes the next mark.
-- KEYS[1] the process's mark (string: a number that only grows)
-- KEYS[2] the alarm (string: who found writes missing, and how many), there while nobody may write
-- KEYS[3] the last acceptance (string: a number that only grows)
-- ARGV[1] the mark that was last acknowledged, 0 when none was; ARGV[2] the next mark
-- ARGV[3] how long a mark is kept, ms; ARGV[4] the last acceptance that this process has seen; ARGV[5] this process
-- ARGV[6] '1' when this is the very run of the server that acknowledged that mark: who took it away did so by hand
-- Reply {code, acceptance, mark found, alarm}: 0 written, 1 writes are missing here, 2 another process's are.
-- Cost O(1).
local accepted = tonumber(redis.call("GET", KEYS[3]) or "0")
local have = tonumber(redis.call("GET", KEYS[1]) or "0")
local last = tonumber(ARGV[1])
local alarm = redis.call("GET", KEYS[2])
if have < last and accepted <= tonumber(ARGV[4]) and (alarm or ARGV[6] ~= "1") then
  if not alarm then
    alarm = ARGV[5] .. " " .. (have == 0 and 0 or last - have)
    redis.call("SET", KEYS[2], alarm)
  end
  return {1, accepted, have, alarm}
end
if alarm then
  -- Whoever raised it finds its own mark again: the data is whole.
  if last == 0 or have < last or string.sub(alarm, 1, #ARGV[5] + 1) ~= ARGV[5] .. " " then
    return {2, accepted, have, alarm}
  end
  redis.call("DEL", KEYS[2])
end
redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
return {0, accepted, have, ""}
