-- Counts a request against a rate (GCRA), by the time of the server. Returns whether it is allowed
-- (1), how many more are now, and otherwise the microseconds until one is.
-- KEYS: the time at which all that was allowed would be due
-- ARGV: microseconds between two requests, requests at once
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now) + interval
local since = due - interval * burst
if now < since then
  return {0, 0, math.ceil(since - now)}
end
redis.call('SET', KEYS[1], string.format('%.0f', due), 'PX', math.ceil((due - now) / 1000))
return {1, math.floor((now - since) / interval), 0}
