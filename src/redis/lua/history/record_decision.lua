-- Records a decision of an autoscaling group under its number. Stores only the newest decisions.
--
-- KEYS: history
-- ARGV: deadline, group, number, JSON, the maximum number of decisions, ms for which they are
-- stored after the last
-- Returns: `ok`
-- Guarantees: may be repeated; the last JSON of a number wins.

--- @include "deadline"

local key = KEYS[1] .. ':decisions:' .. ARGV[2]
redis.call('ZREMRANGEBYSCORE', key, ARGV[3], ARGV[3])
redis.call('ZADD', key, ARGV[3], ARGV[4])
redis.call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[5])
redis.call('PEXPIRE', key, ARGV[6])
return {'ok'}
