-- Replaces one attempt's reservation of a name with the written amount.
--
-- KEYS: usage, unsettled
-- ARGV: deadline, holder (`replica/attempt`), name, amount, revision
-- Returns: `ok`
-- Guarantees: may be repeated; a later confirmed revision wins; a missing name stays missing.

--- @include "deadline"
--- @include "usage_entry"

local name, revision = ARGV[3], ARGV[5]
local entry = entry_of(KEYS[1], name)
if not entry then return {'ok'} end
entry.open = without(entry.open, ARGV[2])
if #revision > #entry.revision or #revision == #entry.revision and revision > entry.revision then
  entry.settled, entry.revision = tonumber(ARGV[4]), revision
end
entry.version = redis.call('HINCRBY', KEYS[1], ':version', 1)
put(KEYS[1], KEYS[2], name, entry)
return {'ok'}
