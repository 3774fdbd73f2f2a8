-- Removes a token and returns its value.
--
-- KEYS: tokens, times, counts
-- ARGV: deadline, token
-- Returns: `ok` and the value; `none`
-- Guarantees: a token is redeemed at most once.

--- @include "deadline"
--- @include "tokens"

local entry, is_good = entry_of(ARGV[2])
if entry then forget(ARGV[2], entry) end
if entry and is_good then return {'ok', entry[3]} end
return {'none'}
