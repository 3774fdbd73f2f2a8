-- Records the start or the end of a replica's work in sandboxes. Work counts as activity.
--
-- KEYS: marks, then for each sandbox its set of replicas at work
-- ARGV: deadline, replica, validity in ms (0: the work has ended), then the sandboxes
-- Returns: `ok`
-- Guarantees: may be repeated; the work of a dead replica expires.

--- @include "deadline"
--- @include "activity_marks"

since_of(KEYS[1])
local replica, ms = ARGV[2], tonumber(ARGV[3])
for i = 4, #ARGV do
  local key = KEYS[i - 2]
  mark(KEYS[1], ARGV[i], 0)
  if ms == 0 then
    redis.call('ZREM', key, replica)
  else
    redis.call('ZADD', key, now + ms, replica)
    redis.call('PEXPIRE', key, ms)
  end
end
return {'ok'}
