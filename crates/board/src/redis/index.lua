local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expiry = tonumber(ARGV[2])

-- Puts the run into an index, where its score is the time at which it expires.
local function enter(index)
  redis.call('ZREMRANGEBYSCORE', index, '-inf', now)
  redis.call('ZADD', index, now + expiry, ARGV[1])
  if redis.call('PTTL', index) < expiry then
    redis.call('PEXPIRE', index, expiry)
  end
end
