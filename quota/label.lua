-- label: whom the units went to. labels is of one quarter of an hour: its number
-- under '\t', '+label' -> units granted, '-label' -> units given back. It moves into
-- the series, behind what that has of its quarter, when a label is first counted in
-- another one. The log has the labels of CHUNK places under '\v' and a number, each in
-- a line after its place: no charge ID begins so.
-- A charge without a label costs nothing here. Cost: O(1); O(labels) once a quarter.

local LABELS = KEYS[12]

-- label_field is where the log has the label of a place.
local function label_field(p)
  return '\v' .. (p - p % CHUNK) / CHUNK
end

-- note counts units under '+' or '-' and a label, in the quarter that the series
-- has begun. It says whether they were: a quarter has 1,000 of these at most, and
-- what goes to further ones has no label.
local function note(sign, label, units)
  local slot = format('%.0f', turns / 900000000 - 1)
  local of = call('HGET', LABELS, '\t')
  if of ~= slot then
    local begun = of and call('HGET', KEYS[11], of)
    if begun then
      call('HDEL', LABELS, '\t')
      local all = call('HGETALL', LABELS)
      for i = 1, #all, 2 do
        all[i] = '\n' .. all[i] .. ' '
      end
      call('HSET', KEYS[11], of, begun .. table.concat(all))
    end
    call('UNLINK', LABELS)
    call('HSET', LABELS, '\t', slot)
    call('PEXPIRE', LABELS, '90000000') -- 25 hours, as the series
  end
  if call('HINCRBY', LABELS, sign .. label, units) == units and call('HLEN', LABELS) > 1001 then
    call('HDEL', LABELS, sign .. label)
    return false
  end
  return true
end
