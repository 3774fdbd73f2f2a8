-- Records events of pools, of each the newest so many, of each owner those of so many pools.
--
-- KEYS: history
-- ARGV: deadline, the most of a pool, the most pools of an owner, ms for which it is known which
-- these are, then owner, namespace/name, number, ms for which the pool's are kept, and JSON in turn
-- Returns: `ok`
-- Guarantees: may be repeated: an event whose number is known is not recorded again.

--- @include "deadline"

-- Forgets those of this owner's pools; another owner may have had, or have, one of that name.
local function forget(key, owner)
  for _, event in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    local of = cjson.decode(string.match(event, '|(.*)')).owner
    if of.namespace .. '/' .. of.team .. '/' .. of.user == owner then
      redis.call('ZREM', key, event)
    end
  end
end

for i = 5, #ARGV, 5 do
  local pools, pool, number = KEYS[1] .. ':pools:' .. ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local key = KEYS[1] .. ':pool_events:' .. pool
  if redis.call('ZCOUNT', key, number, number) == 0 then
    redis.call('ZADD', key, number, number .. '|' .. ARGV[i + 4])
    redis.call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[2])
    redis.call('PEXPIRE', key, ARGV[i + 3])
    redis.call('ZADD', pools, number, pool)
    redis.call('PEXPIRE', pools, ARGV[4])
    for _, oldest in ipairs(redis.call('ZRANGE', pools, 0, -1 - ARGV[3])) do
      forget(KEYS[1] .. ':pool_events:' .. oldest, ARGV[i])
      redis.call('ZREM', pools, oldest)
    end
  end
end
return {'ok'}
