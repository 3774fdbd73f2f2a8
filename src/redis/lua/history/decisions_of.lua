-- Returns the decisions of an autoscaling group, newest first.
--
-- KEYS: history
-- ARGV: deadline, group
-- Returns: `ok`, then the JSON of each
-- Guarantees: changes nothing.

--- @include "deadline"

local answer = {'ok'}
for _, decision in ipairs(redis.call('ZREVRANGE', KEYS[1] .. ':decisions:' .. ARGV[2], 0, -1)) do
  answer[#answer + 1] = decision
end
return answer
