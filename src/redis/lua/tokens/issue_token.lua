-- Stores a value under a token for a while.
--
-- KEYS: tokens, times, counts
-- ARGV: deadline, token, value, ms, sandbox, tenant, the maximum number of a sandbox's tokens, of a
-- tenant's, of all
-- Returns: `ok`, or the limit that is reached: `sandbox`, `tenant`, `all`
-- Guarantees: enforces all limits; expired tokens do not count.

--- @include "deadline"
--- @include "tokens"

local function is_full(of, most)
  return tonumber(redis.call('HGET', KEYS[3], of) or 0) >= tonumber(most)
end
local function limit_met()
  if is_full(ARGV[5], ARGV[7]) then return 'sandbox' end
  if is_full(ARGV[6], ARGV[8]) then return 'tenant' end
  if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[9]) then return 'all' end
end
local met
repeat
  local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)
  for _, token in ipairs(old) do forget(token, (entry_of(token))) end
  met = limit_met()
until not met or #old == 0
if met then return {met} end
redis.call('HSET', KEYS[1], ARGV[2], cjson.encode({ARGV[5], ARGV[6], ARGV[3]}))
redis.call('ZADD', KEYS[2], now + ARGV[4], ARGV[2])
redis.call('HINCRBY', KEYS[3], ARGV[5], 1)
redis.call('HINCRBY', KEYS[3], ARGV[6], 1)
return {'ok'}
