-- Ends a session of the console.
--
-- KEYS: sessions
-- ARGV: deadline, id
-- Returns: `ok`; `none` if the session is missing or has ended
-- Guarantees: the session has ended.

--- @include "deadline"
--- @include "console_sessions"

local text = redis.call('HGET', KEYS[1], ARGV[2])
if not text then return {'none'} end
redis.call('HDEL', KEYS[1], ARGV[2])
local entry, is_good = decoded(text)
return {is_good and entry and 'ok' or 'none'}
