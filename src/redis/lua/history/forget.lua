-- Forgets those that ended before a time, the oldest first.
--
-- KEYS: history
-- ARGV: deadline, the time, the most at once
-- Returns: `ok` and how many
-- Guarantees: may be repeated.

--- @include "deadline"
--- @include "history_forget"

local old = redis.call(
  'ZRANGEBYSCORE', base .. ':all:ended', '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3]
)
return {'ok', forget(old)}
