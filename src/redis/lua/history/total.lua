-- Counts the sandboxes that ended at or after a time.
--
-- KEYS: history
-- ARGV: deadline, the time, the level, or '' and the name of a group
-- Returns: `ok`, the count, how many of them were claimed at or after the time, and the level;
-- `none` if the group does not exist
-- Guarantees: both counts belong to the same moment; changes nothing.

--- @include "deadline"

local base, since, level = KEYS[1], ARGV[2], ARGV[3]
if level == '' then
  local group = redis.call('HGET', base .. ':groups', ARGV[4])
  if not group then return {'none'} end
  level = ':group:' .. group
end
return {
  'ok',
  redis.call('ZCOUNT', base .. level .. ':ended', since, '+inf'),
  redis.call('ZCOUNT', base .. level .. ':claimed', since, '+inf'),
  level
}
