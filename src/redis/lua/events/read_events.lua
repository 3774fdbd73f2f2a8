-- Reads events after a number.
--
-- KEYS: stream, state
-- ARGV: deadline, number, the maximum number of events
-- Returns: `ok`, the number up to which events may be missing, then number and JSON of each event
-- Guarantees: a missing event has at most the returned number.

--- @include "deadline"
--- @include "events_since"

local answer = {'ok', since_of(KEYS[2])}
local entries = redis.call('XRANGE', KEYS[1], '(' .. ARGV[2] .. '-0', '+', 'COUNT', ARGV[3])
for _, entry in ipairs(entries) do
  answer[#answer + 1] = string.match(entry[1], '^%d+')
  answer[#answer + 1] = entry[2][2]
end
return answer
