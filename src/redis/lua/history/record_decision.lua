-- Records a decision of an autoscaling group under its number, of each group the newest so many.
--
-- KEYS: history
-- ARGV: deadline, group, number, JSON, the most, ms for which they are kept after the last
-- Returns: `ok`
-- Guarantees: may be repeated; the last JSON of a number stands.

--- @include "deadline"

local key = KEYS[1] .. ':decisions:' .. ARGV[2]
redis.call('ZREMRANGEBYSCORE', key, ARGV[3], ARGV[3])
redis.call('ZADD', key, ARGV[3], ARGV[4])
redis.call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[5])
redis.call('PEXPIRE', key, ARGV[6])
return {'ok'}
