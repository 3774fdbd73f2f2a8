-- Reads events after a number.
--
-- KEYS: stream, state
-- ARGV: deadline, number, the most at once
-- Returns: `ok`, the number up to which some are not known, then number and JSON in turn
-- Guarantees: none after the number is left out without being below the number returned.

--- @include "deadline"
--- @include "events_since"

local answer = {'ok', since_of(KEYS[2])}
local entries = redis.call('XRANGE', KEYS[1], '(' .. ARGV[2] .. '-0', '+', 'COUNT', ARGV[3])
for _, entry in ipairs(entries) do
  answer[#answer + 1] = string.match(entry[1], '^%d+')
  answer[#answer + 1] = entry[2][2]
end
return answer
