-- Returns how many wait for a pool.
--
-- KEYS: order, seen
-- ARGV: deadline
-- Returns: `ok` and the count
-- Guarantees: only those of living replicas count; the others are removed.

--- @include "deadline"
--- @include "waiting_order"

return {'ok', #living(KEYS[1], KEYS[2], '+inf')}
