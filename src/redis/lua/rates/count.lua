-- Counts one event in a window that begins with the first event.
--
-- KEYS: count
-- ARGV: deadline, length of a window in ms
-- Returns: `ok`, the count, and the rest of the window in ms
-- Guarantees: no count is lost, and no count outlives its window.

--- @include "deadline"

local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {'ok', count, redis.call('PTTL', KEYS[1])}
