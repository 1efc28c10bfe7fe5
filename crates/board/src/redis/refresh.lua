-- Renews the expiry of a run. Returns 0 when a part of it is gone and it must be shown again.
-- KEYS: all runs, the run, its session, the runs of its base (absent when it has none or has ended)
-- ARGV: run id, expiry in ms
if redis.call('PEXPIRE', KEYS[2], expiry) == 0 or redis.call('PEXPIRE', KEYS[3], expiry) == 0 then
  return 0
end
enter(KEYS[1])
if KEYS[4] then
  enter(KEYS[4])
end
return 1
