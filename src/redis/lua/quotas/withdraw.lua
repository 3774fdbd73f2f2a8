-- Withdraws one attempt's reservation of a name.
--
-- KEYS: usage, unsettled
-- ARGV: deadline, holder (`replica/attempt`), name
-- Returns: `ok`
-- Guarantees: may be repeated; does not change other holders' reservations.

--- @include "deadline"
--- @include "usage_entry"

withdraw(KEYS[1], KEYS[2], ARGV[3], ARGV[2])
return {'ok'}
