-- Records events of pools. Stores only the newest events of each pool, and only for an owner's
-- latest pools.
--
-- KEYS: history
-- ARGV: deadline, the maximum number of a pool's events, the maximum number of an owner's pools, ms
-- for which the list of these pools is stored, then for each event: owner, namespace/name, number,
-- ms for which the pool's events are stored, and JSON
-- Returns: `ok`
-- Guarantees: may be repeated: an event with a known number is not recorded again.

--- @include "deadline"

-- Deletes the events of this owner's pool; another owner may have a pool of the same name.
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
