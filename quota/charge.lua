-- charge: for one request or several, in order, grants a cost, or refuses it and
-- gives it a place in the line. This is the half that knows the line; grant.lua
-- comes before it.
--
-- KEYS   as in frame.lua
-- ARGV   as in frame.lua, then for each request: charge ID, cost,
--        class (1 scheduled, 2 interactive; 3 and 4 are these, and take no place);
--        then, if a request has a label, a line of its number, a blank and the label
--        for each that has one
-- Reply  {spans, an answer for each request}. Granted, an answer is numbers as in a
--        state: cost, at, each window's used. Refused, it is
--        {cost, at, wait, position, reason, each window's used}.
--        spans     each window's length, µs, numbers as in a state; a calendar's is that of its present day
--        at        instant of the grant, or the promised one, µs
--        wait      µs from now to the promise
--        position  place in the line, 1 = next, interactive before scheduled; 0 with no place
--        reason    'window', 'line', 'reserve', 'blocked'
-- Errors COST, CALENDAR; nothing is written then.
-- Cost   O(log n) a request, in the log and in the line, whatever the cost charged.
--        Waiters whose grace is over go 1000 at most in one call; until all are
--        gone the answer is a refusal without a place, for 1 ms.

read_meta()
begin()
local dead = sweep()
if total >= FULL then
  rebase()
end
measure()

-- sooner is how many wait in the class that goes first.
local function sooner(class)
  return class == SCHEDULED and m.sum[INTERACTIVE] > 0 and call('ZCARD', LINE[INTERACTIVE]) or 0
end

local function charge(id, cost, class, no_line)
  local mine = m.sum[1] + m.sum[2] > 0 and waiter(id)
  if mine and (mine.class ~= class or mine.cost ~= cost) then
    leave_line({id}) -- it asks for something else now
    mine = nil
  end

  -- Units that wait before it: its class's own, and interactive before scheduled.
  local before = m.sum[class]
  if mine then
    before = tree_sum(SUMS[class], '', mine.seq - 1, tree_top(m.seq[class]), m.sum[class])
  end
  local fits = m.closed <= now and not dead and (mine or before == 0)
  if class == SCHEDULED then
    before = before + m.sum[INTERACTIVE]
  end
  local reason = 'line'
  for _, w in ipairs(windows) do
    local keeps = class == SCHEDULED and w.held or 0
    local room = w.limit - w.used - cost
    if room < 0 then
      reason = 'window'
    elseif room < keeps and reason == 'line' then
      reason = 'reserve'
    end
    fits = fits and room - keeps >= before
  end
  if fits then
    if mine then
      note_turn(mine)
      leave_line({id})
    end
    grant(id, cost)
    return
  end

  refusals = refusals + 1
  if m.closed > now then
    reason = 'blocked'
  end
  local at, position = now + 1000, 0
  if not dead then
    local follows
    at, follows = promise(class, before, cost, mine and mine.seq)
    if mine then
      mine.promise, mine.follows, mine.refusals = at, follows, mine.refusals + 1
      stand(id, mine)
      position = call('ZRANK', LINE[class], id) + 1 + sooner(class)
    elseif not no_line then
      join(id, {class = class, cost = cost, promise = at, follows = follows, since = now, refusals = 1})
      position = call('ZCARD', LINE[class]) + sooner(class)
    else
      at = follows -- with no place it comes after all of the line
    end
  end
  local r = {cost, at, at - now, position, reason}
  for j, w in ipairs(windows) do
    r[5 + j] = w.used
  end
  replies[#replies + 1] = r
end

while asked[i] do
  local class = tonumber(ARGV[own + 3 * i - 1])
  local p = mine[asked[i]] or young[i] or older[i]
  if not (p and again(p + 0)) then
    charge(asked[i], costs[i], class > 2 and class - 2 or class, class > 2)
  end
  i = i + 1
end
if refusals > 0 or n > grants_before then
  if now >= turns then
    begin_slot(grants_before, units_before)
  end
  if refusals > 0 then
    call('HINCRBY', META, 'refusals', refusals)
  end
  touch()
  if labels then
    note_grants()
  end
end
return replies
