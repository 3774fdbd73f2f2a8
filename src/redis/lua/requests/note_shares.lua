-- Records the bytes of tenants' stored answers.
--
-- KEYS: shares, their sum
-- ARGV: deadline, then for each tenant its name and bytes
-- Returns: `ok`, the sum, the tenant with the most bytes and its bytes; the last two are absent if
-- no tenant has any
-- Guarantees: may be repeated; the sum matches the shares.

--- @include "deadline"

for i = 2, #ARGV, 2 do
  local before = redis.call('ZSCORE', KEYS[1], ARGV[i]) or 0
  redis.call('INCRBY', KEYS[2], string.format('%d', ARGV[i + 1] - before))
  if tonumber(ARGV[i + 1]) > 0 then
    redis.call('ZADD', KEYS[1], ARGV[i + 1], ARGV[i])
  else
    redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
local loudest = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {'ok', tonumber(redis.call('GET', KEYS[2]) or 0), loudest[1], loudest[2]}
