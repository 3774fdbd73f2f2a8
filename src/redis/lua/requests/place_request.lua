-- Notes where a request goes, before it is sent there.
--
-- KEYS: request, requests of the tenant, bytes of their answers
-- ARGV: deadline, owner, place or '': it went nowhere
-- Returns: `ok`; `lost` where it is not the owner's
-- Guarantees: may be repeated; another owner's request is not touched.

--- @include "deadline"

if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[2] then return {'lost'} end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], 'place')
else
  redis.call('HSET', KEYS[1], 'place', ARGV[3])
end
return {'ok'}
