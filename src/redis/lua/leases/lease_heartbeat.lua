-- Notes that this replica lives, and whether it takes leases; extends the locks that it holds;
-- returns who lives and who holds what.
--
-- KEYS: replicas, those that take leases, then the lock of each shard
-- ARGV: deadline, replica, `takes`, `lives` or `leaves`, ms without a heartbeat after which a
-- replica is dead, ms for which a lock lasts, then for each shard the value of the lock that this
-- replica holds, '' where it holds none
-- Returns: `ok`, the count of live replicas, their names, the same of those that take leases, then
-- the value of each shard's lock, '' where there is none
-- Guarantees: a lock is extended for its holder alone. A lock of this replica that it does not know
-- of is removed: the answer that it was won has been lost. No lock lasts longer than it may,
-- whatever became of the server's clock. Replicas that died long ago are forgotten, and so are
-- heartbeats from the future, which another server's clock has left.

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
