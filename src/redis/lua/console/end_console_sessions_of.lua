-- Ends all console sessions of a person.
--
-- KEYS: sessions
-- ARGV: deadline, operator
-- Returns: `ok` and their number
-- Guarantees: all of the person's sessions have ended.

--- @include "deadline"
--- @include "console_sessions"

local ended = 0
each_session(function(id, entry)
  if entry.operator == ARGV[2] then
    redis.call('HDEL', KEYS[1], id)
    ended = ended + 1
  end
end)
return {'ok', ended}
