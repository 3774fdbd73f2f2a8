-- Returns how a sandbox ended.
--
-- KEYS: marks, end
-- ARGV: deadline, ms for which an end is kept
-- Returns: `ended` and the end; `none`; `unknown` where an end of that time may have been lost
-- Guarantees: `none` is said only where no end was noted within that time.

--- @include "deadline"
--- @include "activity_marks"

local found, since = redis.call('GET', KEYS[2]), since_of(KEYS[1])
if found then return {'ended', found} end
return { now - since < tonumber(ARGV[2]) and 'unknown' or 'none' }
