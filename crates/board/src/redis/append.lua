-- Adds events to the stream of a run, which has those of its newest attempt without gaps. May be
-- repeated. Returns the number of the stream's last event; 0 when the stream lacks what comes
-- before, so that all has to be sent anew; -1 when a later attempt at the run has begun.
-- KEYS: the stream
-- ARGV: fence token, time to live in ms, most events, number of the first event, 1 to begin anew,
-- events
local stream, fence, first = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[4])
local owner, last
local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
if newest then
  owner, last = tonumber(newest[2][2]), tonumber(string.match(newest[1], '^%d+'))
end
if owner and owner > fence then
  return -1
end
if ARGV[5] == '1' then
  redis.call('DEL', stream)
  last = first - 1
elseif owner ~= fence or last < first - 1 then
  return 0
end
for index = 6, #ARGV do
  local sequence = first + index - 6
  if sequence > last then
    local id = string.format('%.0f-0', sequence)
    redis.call('XADD', stream, 'MAXLEN', '~', ARGV[3], id, 'fence', ARGV[1], 'event', ARGV[index])
    last = sequence
  end
end
redis.call('PEXPIRE', stream, ARGV[2])
return last
