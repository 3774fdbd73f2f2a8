-- Deletes a message that a receiver did not accept.
--
-- KEYS: letters, times
-- ARGV: deadline, id
-- Returns: `ok`
-- Guarantees: the message is no longer stored.

--- @include "deadline"

redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
return {'ok'}
