-- Takes up schedules: gives the instant up to which each is settled, and
-- starts at now where the schedule or its revision is seen for the first time.
--
-- KEYS[1..n]  state hashes
-- ARGV[1]     now in ms, or "" for the server's clock
-- ARGV[2..]   for each key: revision, ttl in ms
-- Reply       {now, last, last, ...} in ms
-- Cost        O(n); a changed revision also reads its hash, of about 25 fields
local now_text = text(now)
local reply = {now}
for i, key in ipairs(KEYS) do
  local revision, ttl = ARGV[2 * i], ARGV[2 * i + 1]
  local field = 'last:' .. revision
  local known = redis.call('HMGET', key, 'revision', field)
  local last = known[2]
  if known[1] ~= revision or not last then
    last = now_text
    redis.call('HSET', key, 'v', '1', 'revision', revision, field, last, 'touched', last)
    redis.call('HDEL', key, 'gap_from', 'gap_to', 'hold')
    -- The revision before this one may still run elsewhere; older ones are let go.
    if known[1] and known[1] ~= revision then
      for _, name in ipairs(redis.call('HKEYS', key)) do
        if string.sub(name, 1, 5) == 'last:' and name ~= field and name ~= 'last:' .. known[1] then
          redis.call('HDEL', key, name)
        end
      end
    end
  end
  redis.call('PEXPIRE', key, ttl)
  reply[i + 1] = tonumber(last)
end
return reply
