-- Ends or prolongs a claim, by its holder alone.
--
-- KEYS[1] refresh   ARGV[1] job   ARGV[2] life in ms, 0 ends it
-- Reply 1 done, 0 somebody else holds it. Cost O(1).
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
