-- Stores a message that a receiver did not accept, and replaces an earlier one with the same id.
--
-- KEYS: letters, times
-- ARGV: deadline, id, letter, the maximum number, ms for which each is stored
-- Returns: `ok`
-- Guarantees: deletes the oldest beyond the maximum; each message expires.

--- @include "deadline"

redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[2], now, ARGV[2])
local function forget(ids)
  for _, id in ipairs(ids) do
    redis.call('HDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
  end
end
forget(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[5]))
forget(redis.call('ZRANGE', KEYS[2], 0, -tonumber(ARGV[4]) - 1))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return {'ok'}
