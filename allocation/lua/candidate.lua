-- candidate: the way from the candidates to the eligible and back. Put after
-- clock and membership.
--
-- HELD  held ZSET, as in import.lua; KEYS[6]
-- cost  O(log n)

-- enlist makes a candidate eligible, on trial.
local function enlist(id, record)
  call('ZREM', KEYS[6], id)
  record.why, record.since, record.target = nil, nil, nil
  unpark(id, record, 'probation')
end

-- dismiss makes one that serves, or is to serve again, a candidate.
local function dismiss(id, record, why)
  leave(id)
  call('ZREM', PARKED, id)
  call('ZADD', KEYS[6], 3, id)
  record.state, record.why, record.since = 'candidate', why, exact(now())
  record.target, record.ends, record.was = nil, nil, nil
  keep(id, record)
end
