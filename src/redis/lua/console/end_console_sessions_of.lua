-- Ends all sessions of a person at the console.
--
-- KEYS: sessions
-- ARGV: deadline, operator
-- Returns: `ok` and how many there were
-- Guarantees: none of those that were there is left.

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
