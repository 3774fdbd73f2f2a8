-- Returns whether a reservation still counts.
--
-- KEYS: usage
-- ARGV: deadline, holder (`replica/attempt`, or `replica` for any attempt of it), name
-- Returns: `yes` or `no`; `no` also if the usage is unknown
-- Guarantees: changes nothing.

--- @include "deadline"
--- @include "run"
--- @include "usage_entry"

local holder = ARGV[2]
local entry = redis.call('HGET', KEYS[1], ':run') == run and entry_of(KEYS[1], ARGV[3])
for _, part in ipairs(entry and entry.open or {}) do
  if part.holder == holder or string.match(part.holder, '^[^/]*') == holder then return {'yes'} end
end
return {'no'}
