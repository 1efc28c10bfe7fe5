-- Shows a run. With the claim "exclusive", returns the ids of the other runs of the same base
-- instead, if there are any.
-- KEYS: all runs, the run, its session, the runs of its base (absent when it has none)
-- ARGV: run id, expiry in ms, claim ("exclusive", "shared", or "none" once the run has ended),
-- summary, work
local base = KEYS[4]
if base and ARGV[3] == 'exclusive' then
  redis.call('ZREMRANGEBYSCORE', base, '-inf', now)
  local rivals = {}
  for _, rival in ipairs(redis.call('ZRANGE', base, 0, -1)) do
    if rival ~= ARGV[1] then
      table.insert(rivals, rival)
    end
  end
  if #rivals > 0 then
    return rivals
  end
end
redis.call('HSET', KEYS[2], 'summary', ARGV[4], 'work', ARGV[5])
redis.call('PEXPIRE', KEYS[2], expiry)
redis.call('SET', KEYS[3], ARGV[1], 'PX', expiry)
enter(KEYS[1])
if base and ARGV[3] == 'none' then
  redis.call('ZREM', base, ARGV[1])
elseif base then
  enter(base)
end
return {}
