-- grant: the first half of charge.lua, whose head says what goes in and out. It
-- answers IDs that were charged before, and grants where there is room and nobody
-- waits. So most charges end here, before the functions of the parts that follow
-- are even made, which would be a tenth of their time.

for k = own, #ARGV, 4 do
  local cost = tonumber(ARGV[k + 1])
  if not (cost and cost >= 1 and cost < 9007199254740992 and cost % 1 == 0) then
    return redis.error_reply('COST must be a whole number from 1 to 2^53-1')
  end
end
local fault = read_windows()
if fault then
  return fault
end
read_meta()
measure()

local replies, grants, units, refusals = {}, 0, 0, 0
for i, w in ipairs(windows) do
  replies[i] = w.span
end

local function answer(granted, cost, at, wait, position, reason)
  local r = {granted, cost, at, wait, position, reason}
  for _, w in ipairs(windows) do
    r[#r + 1] = w.used
  end
  replies[#replies + 1] = r
end

local function grant(id, cost)
  begin()
  local at = append(cost)
  note_id(id, at, cost)
  grants, units = grants + 1, units + cost
  for _, w in ipairs(windows) do
    w.used = w.used + cost
  end
  answer(1, cost, at, 0, 0, '')
end

local function finish()
  if grants + refusals > 0 then
    if now >= (m.slot + 1) * SLOT then
      begin_slot()
    end
  end
  if grants > 0 and call('HINCRBY', META, 'grants', grants) % 8 < grants then
    trim()
  end
  if grants > 0 then
    call('HINCRBY', META, 'units', units)
  end
  if refusals > 0 then
    call('HINCRBY', META, 'refusals', refusals)
  end
  if grants + refusals > 0 then
    touch()
  end
  return replies
end

-- again answers an ID that was charged before.
local function again(id)
  local cost, stamp = find_id(id)
  if cost then
    answer(1, cost, stamp, 0, 0, '')
    return true
  end
end

-- held is how many units of a window are not for a class: the reserve is kept
-- in the windows that are larger than it.
local function held(class, w)
  return class == SCHEDULED and reserve < w.limit and reserve or 0
end

local k = own
while ARGV[k] do
  if not again(ARGV[k]) then
    local cost = tonumber(ARGV[k + 1])
    local fits = m.closed <= now and m.sum[1] + m.sum[2] == 0 and total < FULL
    for _, w in ipairs(windows) do
      fits = fits and w.limit - w.used - held(tonumber(ARGV[k + 2]), w) >= cost
    end
    if not fits then
      break
    end
    grant(ARGV[k], cost)
  end
  k = k + 4
end
if not ARGV[k] then
  return finish()
end
