-- Counts the finished sandboxes of each namespace.
--
-- KEYS: history
-- ARGV: deadline, then the namespaces
-- Returns: `ok`, then the count of each namespace
-- Guarantees: all counts are of one moment; changes nothing.

--- @include "deadline"

local answer = {'ok'}
for i = 2, #ARGV do
  answer[i] = redis.call('ZCARD', KEYS[1] .. ':namespace:' .. ARGV[i] .. ':ended')
end
return answer
