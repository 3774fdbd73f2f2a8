-- Adds lines to the recent audit, and removes the oldest beyond the most that are kept.
--
-- KEYS: stream
-- ARGV: deadline, the most that are kept, then the lines
-- Returns: `ok`
-- Guarantees: the lines of one call stay together, in order.

--- @include "deadline"

for i = 3, #ARGV do redis.call('XADD', KEYS[1], '*', 'line', ARGV[i]) end
redis.call('XTRIM', KEYS[1], 'MAXLEN', ARGV[2])
return {'ok'}
