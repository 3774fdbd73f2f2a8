-- Returns the epoch for a newly acquired lock.
--
-- KEYS: epochs
-- ARGV: deadline, shard
-- Returns: `ok` and the epoch
-- Guarantees: the epoch exceeds all earlier ones, even if those were lost.

--- @include "deadline"

local epoch = math.max(tonumber(redis.call('HGET', KEYS[1], ARGV[2]) or 0) + 1, now)
redis.call('HSET', KEYS[1], ARGV[2], string.format('%d', epoch))
return {'ok', string.format('%d', epoch)}
