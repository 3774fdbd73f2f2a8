-- Stores the end of a sandbox for a while, and deletes its activity.
--
-- KEYS: marks, end, the sandbox's set of replicas at work
-- ARGV: deadline, sandbox, end, ms for which it is stored
-- Returns: `ok`
-- Guarantees: may be repeated; the first end wins.

--- @include "deadline"

redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('DEL', KEYS[3])
redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[4])
return {'ok'}
