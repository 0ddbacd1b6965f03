-- state: what a pool holds. Put after clock.
--
-- KEYS[1] ready, KEYS[2] parked, KEYS[3] held
-- ARGV[1..2]  now, seed
-- reply       {eligible, quarantined, auth_failed, disabled, candidates, next return in microseconds or ""};
--             one whose quarantine is over is eligible: the next take will see it
-- cost        O(log n)

local due = call('ZCOUNT', KEYS[2], '-inf', exact(now()))
local following = call('ZRANGEBYSCORE', KEYS[2], '(' .. exact(now()), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {
  call('ZCARD', KEYS[1]) + due,
  call('ZCARD', KEYS[2]) - due,
  call('ZCOUNT', KEYS[3], 1, 1),
  call('ZCOUNT', KEYS[3], 2, 2),
  call('ZCOUNT', KEYS[3], 3, 3),
  following[2] and exact(tonumber(following[2])) or '',
}
