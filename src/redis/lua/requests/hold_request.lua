-- Notes that the owner of a request lives.
--
-- KEYS: request, requests of the tenant, bytes of their answers
-- ARGV: deadline, owner, ms for which it stays the owner's
-- Returns: `ok`; `lost` where it is not the owner's
-- Guarantees: may be repeated.

--- @include "deadline"

if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[2] then return {'lost'} end
redis.call('HSET', KEYS[1], 'until', now + ARGV[3])
return {'ok'}
