-- Removes a waiting claim.
--
-- KEYS: order
-- ARGV: deadline, member (`id|replica`)
-- Returns: `ok`
-- Guarantees: may be repeated.

--- @include "deadline"

redis.call('ZREM', KEYS[1], ARGV[2])
return {'ok'}
