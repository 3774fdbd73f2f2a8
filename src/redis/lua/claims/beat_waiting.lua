-- Notes that a replica lives, and which of its requests wait for a pool.
--
-- KEYS: order, seen
-- ARGV: deadline, replica, then member and its time in turn; '' as the time: it is about to come
-- Returns: `ok`
-- Guarantees: may be repeated; afterwards the replica has these waiting and no others, each at the
-- place that it had.

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
