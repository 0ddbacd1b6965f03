-- hot: the shortest way of a charge. It grants one where nothing has to be sought and
-- nobody waits, with no function and no table. In all other cases it does nothing, and
-- charge.lua answers, which would do the same here in nearly twice the time: its keys
-- alone are twice as many.
--
-- KEYS   as in frame.lua, 1 to 4
--        5 series   6 labels
-- ARGV   as in frame.lua, then charge ID, cost, class, and the label if there is one:
--        as charge.lua takes them
-- Reply  granted: cost, at, then span and used of each window, numbers as in a state,
--        each as in charge.lua; else ''
-- Cost   O(1)

local SERIES, LABELS = KEYS[5], KEYS[6]
local SLACK = 1000 -- a time to live that is so little short, ms, is not given again: to ask for it is half the price
local cost = not string.find(ARGV[6], '%D') and tonumber(ARGV[6])
if cold == 0 and cost and cost >= 1 and cost < NEVER and cost % 1 == 0
  and n > first and now - since < keep and now < turns and total < FULL and given == count then
  local id, held, fits = ARGV[5], (ARGV[7] == '1' or ARGV[7] == '3') and reserve or 0, true
  local stamp, sum = now > last and now or last + 1, total + cost
  local reply, edges_at = nil, 16 * count + 33
  for i = 1, given do
    local limit, span = take('<dd', ARGV[2], 16 * i + 17)
    local from, to, floor, place = take('<dddd', state, 81 + 32 * i)
    local used = sum - floor
    fits = fits and from <= now - span and now - span < to and to < NEVER and (span == 0) == (place < 0)
      and used + (held < limit and held or 0) <= limit
    if span == 0 then -- of this zone still? A day that was remembered may be another's
      local edges_end = edges_at + 8 + 8 * take('<d', ARGV[2], edges_at)
      fits = fits and string.find(sub(ARGV[2], edges_at + 8, edges_end - 1), pack('<dd', from, to), 1, true)
      edges_at = edges_end
    end
    span = span > 0 and span or to - from
    reply = reply and reply .. pack('<dd', span, used) or pack('<dddd', cost, stamp, span, used)
  end
  -- A label that this quarter of an hour knows already. It stands in a line: 1, a blank, the label.
  local label = ARGV[8] and sub(ARGV[8], 3, -2)
  if label then
    fits = fits and call('HGET', LABELS, '\t') == format('%.0f', turns / 900000000 - 1) and call('HEXISTS', LABELS, '+' .. label) == 1
  end
  if fits and not (first > old and call('HGET', OLDER, id)) and call('HSETNX', YOUNG, id, n + 1) == 1 then
    if n - kept < CHUNK - 1 then
      call('SETRANGE', STATE, '0', pack('<ddd', sum, stamp, n + 1))
      call('APPEND', STATE, pack('<dd', stamp, sum))
      if call('PTTL', STATE) < life - SLACK then
        call('PEXPIRE', STATE, life)
      end
    else
      local tail = HEADLEN + 32 * given
      call('HSET', YOUNG, '\t' .. (kept - first) / CHUNK, pack('<d', edge) .. sub(state, tail + 1) .. pack('<dd', stamp, sum))
      call('SET', STATE, pack('<dddd', sum, stamp, n + 1, sum) .. sub(state, 33, tail), 'PX', life)
      call('PEXPIRE', OLDER, ARGV[3])
      call('PEXPIRE', META, life)
      call('PEXPIRE', SERIES, '90000000')
    end
    if call('PTTL', YOUNG) < ARGV[3] - SLACK then
      call('PEXPIRE', YOUNG, ARGV[3])
    end
    if label then
      call('HINCRBY', LABELS, '+' .. label, cost)
      local at = '\v' .. (n + 1 - (n + 1) % CHUNK) / CHUNK
      call('HSET', YOUNG, at, (call('HGET', YOUNG, at) or '') .. format('%.0f %s\n', n + 1, label))
    end
    return reply
  end
end
return ''
