-- Claims a request for one dispatcher.
--
-- KEYS[1]  the request's hash
-- ARGV[1]  now in ms, or "" for the server's clock
-- ARGV[2]  the dispatcher
-- ARGV[3]  how long the claim holds, in ms
-- Reply    {now, next, to} in ms; {now} when it is gone or another one has it
-- Cost     O(1)
local h = redis.call('HMGET', KEYS[1], 'next', 'to', 'claim', 'claim_until')
if not h[1] or (h[3] and h[3] ~= ARGV[2] and tonumber(h[4]) > now) then
  return {now}
end
redis.call('HSET', KEYS[1], 'claim', ARGV[2], 'claim_until', text(now + tonumber(ARGV[3])))
return {now, tonumber(h[1]), tonumber(h[2])}
