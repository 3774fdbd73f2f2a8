-- Stores the answer of a request, and deletes the tenant's oldest answers if they exceed its limit.
--
-- KEYS: request, requests of the tenant, bytes of their answers
-- ARGV: deadline, owner, body, answer, ms for which it is stored, its counted bytes, the tenant's
-- maximum bytes
-- Returns: `ok` and the tenant's bytes; `lost` if it has another answer or another owner
-- Guarantees: may be repeated; the first answer wins.

--- @include "deadline"
--- @include "forget_requests"

local owner, body, answer = unpack(redis.call('HMGET', KEYS[1], 'owner', 'body', 'answer'))
if answer == ARGV[4] and body == ARGV[3] then
  return {'ok', redis.call('HGET', KEYS[3], ':bytes') or 0}
end
if answer or (owner and owner ~= ARGV[2]) then return {'lost'} end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'body', ARGV[3], 'answer', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], now + ARGV[5], KEYS[1])
if redis.call('PTTL', KEYS[2]) < 0 then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
local before = redis.call('HGET', KEYS[3], KEYS[1]) or 0
redis.call('HSET', KEYS[3], KEYS[1], ARGV[6])
redis.call('HINCRBY', KEYS[3], ':bytes', ARGV[6] - before)
redis.call('PEXPIRE', KEYS[3], ARGV[5])
return {'ok', forget_oldest(KEYS[2], KEYS[3], tonumber(ARGV[7]))}
