-- Returns the end of a sandbox.
--
-- KEYS: marks, end
-- ARGV: deadline, ms for which an end is stored
-- Returns: `ended` and the end; `none`; `unknown` if a recent end may have been lost
-- Guarantees: `none` only if no end was stored within that time.

--- @include "deadline"
--- @include "activity_marks"

local found, since = redis.call('GET', KEYS[2]), since_of(KEYS[1])
if found then return {'ended', found} end
return { now - since < tonumber(ARGV[2]) and 'unknown' or 'none' }
