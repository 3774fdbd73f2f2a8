-- Returns a tenant's usage.
--
-- KEYS: usage of each resource
-- ARGV: deadline
-- Returns: `known` and the amount of each resource; `unknown` if any of them is unknown
-- Guarantees: all amounts belong to the same moment; changes nothing.

--- @include "deadline"
--- @include "run"

local answer = {'known'}
for i, key in ipairs(KEYS) do
  local usage = redis.call('HMGET', key, ':run', ':total')
  if usage[1] ~= run then return {'unknown'} end
  answer[i + 1] = usage[2]
end
return answer
