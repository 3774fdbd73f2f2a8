-- Records a heartbeat of a replica, and its requests that wait for a pool.
--
-- KEYS: order, seen
-- ARGV: deadline, replica, then for each request its member and its time; '' as the time if it is
-- about to join
-- Returns: `ok`
-- Guarantees: may be repeated; afterwards exactly these requests of the replica wait, each at its
-- former position.

--- @include "deadline"
--- @include "waiting_order"

local order, seen, replica = KEYS[1], KEYS[2], ARGV[2]
local mine = {}
for i = 3, #ARGV, 2 do
  mine[ARGV[i]] = true
  if ARGV[i + 1] ~= '' then redis.call('ZADD', order, 'NX', ARGV[i + 1], ARGV[i]) end
end
for _, member in ipairs(redis.call('ZRANGE', order, 0, -1)) do
  if not mine[member] and string.match(member, '^[^|]*|(.*)$') == replica then
    redis.call('ZREM', order, member)
  end
end
redis.call('HSET', seen, replica, now)
remember(order, seen)
return {'ok'}
