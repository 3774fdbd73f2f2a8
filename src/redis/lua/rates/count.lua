-- Counts one in a window that begins with the first.
--
-- KEYS: count
-- ARGV: deadline, ms of a window
-- Returns: `ok`, the count, and the ms left of the window
-- Guarantees: no count is lost, and none outlives its window.

--- @include "deadline"

local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {'ok', count, redis.call('PTTL', KEYS[1])}
