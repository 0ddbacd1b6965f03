-- again: a call whose reply was lost and that the client sends once more is
-- answered as before, not made twice. Put before the script that it guards.
--
-- A caller lends the key to one call at a time and numbers its calls, so the
-- last reply is all that need be kept.
--
-- key     STRING  "number reply" of the last call made under the key; ends after a minute,
--                 far beyond the time in which a client tries again
-- number  of this call, higher than those before it
-- cost    O(1), and the length of the reply

local KEPT_MS = 60000

-- recall gives the reply of this very call, or nil. A call from before the last
-- one was overtaken: nobody waits for it any more, so it must not be made.
local function recall(key, number)
  local known = call('GET', key)
  if not known then return nil end
  local blank = string.find(known, ' ', 1, true)
  local last, this = tonumber(string.sub(known, 1, blank - 1)), tonumber(number)
  if last == this then return string.sub(known, blank + 1) end
  if last > this then error('OVERTAKEN this call was given up and a later one made') end
  return nil
end

local function remember(key, number, reply)
  call('SET', key, number .. ' ' .. reply, 'PX', KEPT_MS)
end

-- once makes a call whose reply is one word.
local function once(key, number, act)
  local reply = recall(key, number)
  if not reply then
    reply = act()
    remember(key, number, reply)
  end
  return reply
end
