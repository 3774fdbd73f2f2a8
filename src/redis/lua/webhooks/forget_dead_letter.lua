-- Forgets a message that a receiver did not take.
--
-- KEYS: letters, times
-- ARGV: deadline, id
-- Returns: `ok`
-- Guarantees: it is not kept any more.

--- @include "deadline"

redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
return {'ok'}
