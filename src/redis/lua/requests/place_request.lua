-- Stores the place of a request before it is sent there.
--
-- KEYS: request, requests of the tenant, bytes of their answers
-- ARGV: deadline, owner, place, or '' if it was not sent
-- Returns: `ok`; `lost` if it has another owner
-- Guarantees: may be repeated; does not change another owner's request.

--- @include "deadline"

if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[2] then return {'lost'} end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], 'place')
else
  redis.call('HSET', KEYS[1], 'place', ARGV[3])
end
return {'ok'}
