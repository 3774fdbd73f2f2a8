-- Returns the number of claims that wait for a pool.
--
-- KEYS: order, seen
-- ARGV: deadline
-- Returns: `ok` and the count
-- Guarantees: counts only claims of live replicas, and removes the others.

--- @include "deadline"
--- @include "waiting_order"

return {'ok', #living(KEYS[1], KEYS[2], '+inf')}
