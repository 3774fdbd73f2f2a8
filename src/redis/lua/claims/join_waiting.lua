-- Appends a claim to those that wait for a pool.
--
-- KEYS: order, seen
-- ARGV: deadline, id, replica, the maximum number of waiting claims
-- Returns: `ok` and the time that is its position; `full`
-- Guarantees: positions are unique; claims of dead replicas do not count.

--- @include "deadline"
--- @include "waiting_order"

local order, seen, replica = KEYS[1], KEYS[2], ARGV[3]
redis.call('HSET', seen, replica, now)
if
  redis.call('ZCARD', order) >= tonumber(ARGV[4])
  and #living(order, seen, '+inf') >= tonumber(ARGV[4])
then
  return {'full'}
end
local last = redis.call('ZREVRANGE', order, 0, 0, 'WITHSCORES')[2] or 0
local at = number(math.max(last + 1, clock[1] * 1000000 + clock[2]))
redis.call('ZADD', order, at, ARGV[2] .. '|' .. replica)
remember(order, seen)
return {'ok', at}
