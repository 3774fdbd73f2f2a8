-- Returns the events of pools with a name, lowest number first.
--
-- KEYS: history
-- ARGV: deadline, namespace/name
-- Returns: `ok`, then `number|JSON` of each
-- Guarantees: changes nothing.

--- @include "deadline"

local answer = {'ok'}
for _, event in ipairs(redis.call('ZRANGE', KEYS[1] .. ':pool_events:' .. ARGV[2], 0, -1)) do
  answer[#answer + 1] = event
end
return answer
