-- Renews the lease of a request's owner.
--
-- KEYS: request, requests of the tenant, bytes of their answers
-- ARGV: deadline, owner, length of the lease in ms
-- Returns: `ok`; `lost` if it has another owner
-- Guarantees: may be repeated.

--- @include "deadline"

if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[2] then return {'lost'} end
redis.call('HSET', KEYS[1], 'until', now + ARGV[3])
return {'ok'}
