-- Finds a finished sandbox.
--
-- KEYS: history
-- ARGV: deadline, id
-- Returns: `ok` and its entry of `:bodies`; `none`
-- Guarantees: changes nothing.

--- @include "deadline"

local entry = redis.call('HGET', KEYS[1] .. ':bodies', ARGV[2])
if entry then return {'ok', entry} end
return {'none'}
