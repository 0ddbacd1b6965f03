-- tree: sums over places that come and go (a Fenwick tree in a hash). Node i
-- holds the sum over (i - lowbit(i), i]; a node of sum 0 is not stored, so the
-- hash is as large as what lives. cap, a power of two, is the last node.
-- Node i is the field with that number after the name given. All is O(log cap).

local HOLE = '\r' -- of a log's holes: no charge ID begins so

-- tree_top is the cap for places up to n.
local function tree_top(n)
  local cap = 1
  while cap < n do
    cap = cap * 2
  end
  return cap
end

-- tree_add adds d at each of the places in list, node by node.
local function tree_add(key, field, list, cap)
  local nodes, order = {}, {}
  for _, e in ipairs(list) do
    local i, b = e[1], 1
    while i <= cap do
      if not nodes[i] then
        nodes[i] = 0
        order[#order + 1] = i
      end
      nodes[i] = nodes[i] + e[2]
      while i % (b * 2) == 0 do
        b = b * 2
      end
      i = i + b
    end
  end
  for _, i in ipairs(order) do
    if call('HINCRBY', key, field .. i, nodes[i]) == 0 then
      call('HDEL', key, field .. i)
    end
  end
end

-- tree_sum is the sum over the places 1…i; all is the sum over everything.
local function tree_sum(key, field, i, cap, all)
  if i >= cap then
    return all
  end
  local nodes, b = {}, 1
  while i > 0 do
    if i % (b * 2) ~= 0 then
      nodes[#nodes + 1] = field .. i
      i = i - b
    end
    b = b * 2
  end
  local sum = 0
  if #nodes > 0 then
    for _, v in ipairs(call('HMGET', key, unpack(nodes))) do
      sum = sum + tonumber(v or 0)
    end
  end
  return sum
end

-- tree_find is the first place at which the sum reaches target (> 0, and no
-- more than the sum over everything).
local function tree_find(key, field, target, cap)
  local at, step = 0, cap
  while step >= 1 do
    if at + step < cap then
      local v = tonumber(call('HGET', key, field .. at + step) or 0)
      if v < target then
        target = target - v
        at = at + step
      end
    end
    step = step / 2
  end
  return at + 1
end
