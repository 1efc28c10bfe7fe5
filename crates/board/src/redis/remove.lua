-- Removes keys of a tenant: those that one step of a scan finds. Answers where the next step
-- begins, "0" at the end, and how many are gone.
-- ARGV: where the step begins, the pattern of the keys
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
local removed = 0
for _, key in ipairs(found[2]) do
  removed = removed + redis.call('UNLINK', key)
end
return {found[1], removed}
