-- Gives the lock that was won its epoch.
--
-- KEYS: epochs
-- ARGV: deadline, shard
-- Returns: `ok` and the epoch
-- Guarantees: the epoch is higher than every one before, also where those were lost.

--- @include "deadline"

local epoch = math.max(tonumber(redis.call('HGET', KEYS[1], ARGV[2]) or 0) + 1, now)
redis.call('HSET', KEYS[1], ARGV[2], string.format('%d', epoch))
return {'ok', string.format('%d', epoch)}
