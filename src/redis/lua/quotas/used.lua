-- Returns what a tenant uses.
--
-- KEYS: usage of each resource
-- ARGV: deadline
-- Returns: `known` and a number for each resource; `unknown` where any of them is not known
-- Guarantees: all numbers are of one moment; changes nothing.

--- @include "deadline"
--- @include "run"

local answer = {'known'}
for i, key in ipairs(KEYS) do
  local usage = redis.call('HMGET', key, ':run', ':total')
  if usage[1] ~= run then return {'unknown'} end
  answer[i + 1] = usage[2]
end
return answer
