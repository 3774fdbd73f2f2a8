-- Removes a name from a tenant's usage.
--
-- KEYS: usage, unsettled
-- ARGV: deadline, name
-- Returns: `ok`
-- Guarantees: may be repeated.

--- @include "deadline"
--- @include "usage_entry"

local entry = entry_of(KEYS[1], ARGV[2])
if entry then drop(KEYS[1], KEYS[2], ARGV[2], entry.amount) end
return {'ok'}
