-- Records a heartbeat of this replica, and whether it takes leases. Extends its locks. Returns the
-- live replicas and the holders of the locks.
--
-- KEYS: replicas, those that take leases, then the lock of each shard
-- ARGV: deadline, replica, `takes`, `lives` or `leaves`, ms without a heartbeat after which a
-- replica is dead, validity of a lock in ms, then for each shard the value of this replica's lock,
-- or ''
-- Returns: `ok`, the number of live replicas, their names, the same for replicas that take leases,
-- then the value of each shard's lock, or ''
-- Guarantees: extends a lock only for its holder. Removes a lock of this replica that it does not
-- list: the answer to its acquisition was lost. No lock outlives its validity, even if the server's
-- clock jumps. Deletes replicas that died long ago, and heartbeats from the future, left by another
-- server's clock.

--- @include "deadline"

local replica, part, dead_ms, ttl = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local answer = {'ok'}
for at, is_in in ipairs({part ~= 'leaves', part == 'takes'}) do
  local names = KEYS[at]
  redis.call('ZREMRANGEBYSCORE', names, '-inf', now - 60000)
  redis.call('ZREMRANGEBYSCORE', names, '(' .. now, '+inf')
  if is_in then redis.call('ZADD', names, now, replica) else redis.call('ZREM', names, replica) end
  local live = redis.call('ZRANGEBYSCORE', names, now - dead_ms, '+inf')
  answer[#answer + 1] = #live
  for _, name in ipairs(live) do answer[#answer + 1] = name end
end
for at = 3, #KEYS do
  local key, held = KEYS[at], ARGV[at + 3]
  local value = redis.call('GET', key) or ''
  if value ~= '' and value == held then
    redis.call('PEXPIRE', key, ttl)
  elseif string.sub(value, 1, #replica + 1) == replica .. ' ' then
    redis.call('DEL', key)
    value = ''
  elseif value ~= '' then
    local left = redis.call('PTTL', key)
    if left < 0 or left > ttl then redis.call('PEXPIRE', key, ttl) end
  end
  answer[#answer + 1] = value
end
return answer
