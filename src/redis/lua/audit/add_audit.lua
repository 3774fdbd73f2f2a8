-- Adds lines to the recent audit log, and deletes the oldest beyond the limit.
--
-- KEYS: stream
-- ARGV: deadline, the maximum number of lines, then the lines
-- Returns: `ok`
-- Guarantees: the lines of one call stay together, in order.

--- @include "deadline"

for i = 3, #ARGV do redis.call('XADD', KEYS[1], '*', 'line', ARGV[i]) end
redis.call('XTRIM', KEYS[1], 'MAXLEN', ARGV[2])
return {'ok'}
