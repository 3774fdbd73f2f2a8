-- Returns names with old reservations that are not settled, oldest first.
--
-- KEYS: usage, unsettled
-- ARGV: deadline, age in ms
-- Returns: `ok`, then name and version of each, at most 100; `unknown` if the usage is unknown
-- Guarantees: changes no usage; deletes the times of names that are gone.

--- @include "deadline"
--- @include "run"
--- @include "usage_entry"

if redis.call('HGET', KEYS[1], ':run') ~= run then return {'unknown'} end
local answer = {'ok'}
local names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[2], 'LIMIT', 0, 100)
for _, name in ipairs(names) do
  local entry = entry_of(KEYS[1], name)
  if entry then
    answer[#answer + 1] = name
    answer[#answer + 1] = entry.version
  else
    redis.call('ZREM', KEYS[2], name)
  end
end
return answer
