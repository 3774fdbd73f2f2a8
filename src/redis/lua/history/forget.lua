-- Deletes sandboxes that ended before a time, oldest first.
--
-- KEYS: history
-- ARGV: deadline, the time, the maximum number
-- Returns: `ok` and the number of deleted sandboxes
-- Guarantees: may be repeated.

--- @include "deadline"
--- @include "history_forget"

local old = redis.call(
  'ZRANGEBYSCORE', base .. ':all:ended', '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3]
)
return {'ok', forget(old)}
