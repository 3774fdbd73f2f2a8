-- Reads a session of the console, and records its use.
--
-- KEYS: sessions
-- ARGV: deadline, id
-- Returns: `ok` and the session as JSON; `none`
-- Guarantees: an ended session never returns.

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
