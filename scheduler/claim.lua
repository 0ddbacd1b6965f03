-- Claims the next tick of schedules for one dispatcher, and tells what it
-- needs to decide about them.
--
-- KEYS[1..n]  state hashes
-- ARGV[1]     now in ms, or "" for the server's clock
-- ARGV[2]     the dispatcher
-- ARGV[3]     how long a claim holds, in ms
-- ARGV[4..]   for each key: revision, the last settled instant it knows, when
--             the next tick is due, since when it has attended the schedule
-- Reply       {now, {code, last, wait, gap_from, gap_to, pause_from, pause_to}, ...} in ms
--             code 0 claimed; 1 last is another; 2 claimed by another one for
--             wait; 3 due in wait. pause_to 0 is an open end
-- Cost        O(n)
local reply = {now}
for i, key in ipairs(KEYS) do
  local at = 4 * i
  local field = 'last:' .. ARGV[at]
  local known, due, since = ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local h = redis.call('HMGET', key, field, 'touched', 'gap_from', 'gap_to', 'pause_from', 'pause_to', 'claim', 'claim_until')
  local last, touched = h[1], tonumber(h[2])
  local gap_from, gap_to = tonumber(h[3]) or 0, tonumber(h[4]) or 0
  if not last then
    -- The record was lost; the dispatcher remembers.
    last = known
    touched = since
    redis.call('HSET', key, 'v', '1', 'revision', ARGV[at], field, last)
  end
  touched = touched or since
  if last ~= known then
    reply[i + 1] = {1, tonumber(last), 0, 0, 0, 0, 0}
  elseif due > now then
    reply[i + 1] = {3, tonumber(last), due - now, 0, 0, 0, 0}
  elseif h[7] and h[7] ~= ARGV[2] and tonumber(h[8]) > now then
    reply[i + 1] = {2, tonumber(last), tonumber(h[8]) - now, 0, 0, 0, 0}
  else
    if since > touched then
      -- Nobody touched the schedule from touched until this dispatcher came. A gap that still has ticks to settle grows.
      if due >= gap_to then
        gap_from = touched
      end
      gap_to = since
      redis.call('HSET', key, 'gap_from', text(gap_from), 'gap_to', text(gap_to))
    end
    redis.call('HSET', key, 'touched', text(now), 'claim', ARGV[2], 'claim_until', text(now + tonumber(ARGV[3])))
    reply[i + 1] = {0, tonumber(last), 0, gap_from, gap_to, tonumber(h[5]) or 0, tonumber(h[6]) or 0}
  end
end
return reply
