-- Reads the messages that a receiver did not accept, newest first.
--
-- KEYS: letters, times
-- ARGV: deadline, ms for which each is stored
-- Returns: `ok` and each letter
-- Guarantees: leaves out expired messages.

--- @include "deadline"

local all = {'ok'}
local since = string.format('(%d', now - ARGV[2])
local ids = redis.call('ZREVRANGEBYSCORE', KEYS[2], '+inf', since)
for _, id in ipairs(ids) do
  local letter = redis.call('HGET', KEYS[1], id)
  if letter then table.insert(all, letter) end
end
return all
