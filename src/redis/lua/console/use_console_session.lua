-- Reads a session of the console, and notes that it is used.
--
-- KEYS: sessions
-- ARGV: deadline, id
-- Returns: `ok` and the session as JSON; `none`
-- Guarantees: one that has ended never comes back.

--- @include "deadline"
--- @include "console_sessions"

local text = redis.call('HGET', KEYS[1], ARGV[2])
if not text then return {'none'} end
local entry, is_good = decoded(text)
if not is_good then
  redis.call('HDEL', KEYS[1], ARGV[2])
  return {'none'}
end
entry.seenAt = now
redis.call('HSET', KEYS[1], ARGV[2], cjson.encode(entry))
return {'ok', shown(ARGV[2], entry)}
