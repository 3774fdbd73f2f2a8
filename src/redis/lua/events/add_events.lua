-- Adds events, and deletes the oldest beyond the limit.
--
-- KEYS: stream, state, seen
-- ARGV: deadline, the maximum number of events, then for each event its key and JSON
-- Returns: `ok` and the number of each event
-- Guarantees: may be repeated: an event with a known key keeps its number; numbers increase.

--- @include "deadline"
--- @include "events_since"

since_of(KEYS[2])
local most, answer = tonumber(ARGV[2]), {'ok'}
local last = tonumber(redis.call('HGET', KEYS[2], 'last'))
for i = 3, #ARGV, 2 do
  local number = redis.call('ZSCORE', KEYS[3], ARGV[i])
  if not number then
    last = math.max(last + 1, now * 1000)
    number = string.format('%d', last)
    redis.call('ZADD', KEYS[3], number, ARGV[i])
    redis.call('XADD', KEYS[1], number .. '-0', 'event', ARGV[i + 1])
  end
  answer[#answer + 1] = number
end
redis.call('HSET', KEYS[2], 'last', string.format('%d', last))
local over = redis.call('XLEN', KEYS[1]) - most
if over > 0 then
  local gone = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', over)
  redis.call('HSET', KEYS[2], ':since', string.match(gone[#gone][1], '^%d+'))
  redis.call('XTRIM', KEYS[1], 'MAXLEN', most)
end
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1 - 2 * most)
return answer
