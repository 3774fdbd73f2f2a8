-- Records a finished sandbox.
--
-- KEYS: history
-- ARGV: deadline, id, JSON, name of its group, claim time, end time, ms for which it is stored
-- after its end
-- Returns: `ok`
-- Guarantees: may be repeated; the first record of an id wins.

--- @include "deadline"
--- @include "history_indexes"
--- @include "history_overhead"

local id, body, name, claimed, ended = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('HEXISTS', base .. ':bodies', id) == 1 then return {'ok'} end
local group = redis.call('HGET', base .. ':groups', name)
if not group then
  group = tostring(redis.call('INCR', base .. ':last-group'))
  redis.call('HSET', base .. ':groups', name, group)
  redis.call('HSET', base .. ':names', group, name)
end
redis.call('HSET', base .. ':bodies', id, group .. '|' .. claimed .. '|' .. ended .. '|' .. body)
local bytes = #body + RECORD_BYTES
for _, event in ipairs(redis.call('ZRANGE', base .. ':events:' .. id, 0, -1)) do
  bytes = bytes + #event + EVENT_BYTES
end
redis.call('HSET', base .. ':charges', id, bytes)
charge(name, bytes)
for _, level in ipairs(levels_of(name, group)) do
  redis.call('ZADD', level .. ':claimed', claimed, id .. '|' .. group .. '|' .. ended)
  redis.call('ZADD', level .. ':ended', ended, id)
end
redis.call('PEXPIREAT', base .. ':events:' .. id, string.format('%d', ended + ARGV[7]))
return {'ok'}
