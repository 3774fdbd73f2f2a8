-- Releases a request. Deletes it unless it names an instance or a place: its claim there may have
-- been written, so the next owner must search for it.
--
-- KEYS: request, requests of the tenant, bytes of their answers
-- ARGV: deadline, owner
-- Returns: `ok`
-- Guarantees: may be repeated; does not change another owner's request.

--- @include "deadline"

if redis.call('HGET', KEYS[1], 'owner') == ARGV[2] then
  local instance, place = unpack(redis.call('HMGET', KEYS[1], 'instance', 'place'))
  if instance or place then
    redis.call('HDEL', KEYS[1], 'owner')
    redis.call('HSET', KEYS[1], 'until', 0)
  else
    redis.call('DEL', KEYS[1])
    redis.call('ZREM', KEYS[2], KEYS[1])
  end
end
return {'ok'}
