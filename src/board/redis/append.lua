-- Adds events to the stream of a run, so that it is without gaps and a later attempt's numbers win. May be repeated.
-- Returns the number of the stream's last event; less than what was sent when events before are missing, which must come first;
-- -1 when a later attempt at the run has begun.
-- KEYS: the stream
-- ARGV: attempt, time to live in ms, most events, number of the first event, whether to begin anew (1), events
local stream = KEYS[1]
local attempt, first = tonumber(ARGV[1]), tonumber(ARGV[4])

local function number(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

local function add(sequence, owner, event)
  redis.call('XADD', stream, 'MAXLEN', '~', ARGV[3], sequence .. '-0', 'attempt', owner, 'event', event)
end

local last = 0
local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
if newest then
  last = number(newest)
  local owner = tonumber(newest[2][2])
  if owner > attempt then
    return -1
  end
  if owner < attempt and last >= first and ARGV[6] then
    -- The earlier attempt told more than the later one has gone on from.
    local kept = redis.call('XRANGE', stream, '-', (first - 1) .. '-0')
    redis.call('DEL', stream)
    last = 0
    for _, entry in ipairs(kept) do
      last = number(entry)
      add(last, entry[2][2], entry[2][4])
    end
  end
end
if ARGV[5] == '1' then
  redis.call('DEL', stream)
  last = first - 1
end
if last < first - 1 then
  return last
end
for index = 6, #ARGV do
  local sequence = first + index - 6
  if sequence > last then
    add(string.format('%.0f', sequence), ARGV[1], ARGV[index])
    last = sequence
  end
end
redis.call('PEXPIRE', stream, ARGV[2])
return last
