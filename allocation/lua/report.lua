-- report: what became of an allocation. Put after outcome.
--
-- KEYS, ARGV[1..13]  as in outcome.lua; effect: clear, strike, auth, ban, witness or none
-- ARGV[14]    token of the lease, or ""
-- reply       "ok", "unknown" (no such endpoint), or "blamed" (the target is paused by this report)
-- cost        as in outcome.lua

return once(CALL, number, function()
  if ARGV[14] ~= '' then release(ARGV[14], id) end
  if call('HEXISTS', ENDPOINTS, 'u:' .. id) == 0 then return 'unknown' end
  if effect == 'none' then return 'ok' end
  if effect == 'auth' then
    refuse_login(health(id))
    return 'ok'
  end
  if effect == 'clear' then
    clear(health(id))
    return 'ok'
  end
  local excuse = excused()
  if excuse then return excuse end
  if effect == 'ban' and name ~= '' then
    bar()
  elseif effect ~= 'witness' then
    strike(health(id))
  end
  return 'ok'
end)
