-- Reads the value of a token.
--
-- KEYS: tokens, times, counts
-- ARGV: deadline, token
-- Returns: `ok` and the value; `none`
-- Guarantees: changes nothing.

--- @include "deadline"
--- @include "tokens"

local entry, is_good = entry_of(ARGV[2])
if entry and is_good then return {'ok', entry[3]} end
return {'none'}
