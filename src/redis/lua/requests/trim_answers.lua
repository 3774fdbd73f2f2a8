-- Forgets some of the tenant's oldest answers while they have more than so many bytes.
--
-- KEYS: requests of the tenant, bytes of their answers
-- ARGV: deadline, the bytes
-- Returns: `ok` and the bytes that are left
-- Guarantees: may be repeated; a request in flight is not forgotten for its bytes.

--- @include "deadline"
--- @include "forget_requests"

forget_old(KEYS[1], KEYS[2])
return {'ok', forget_oldest(KEYS[1], KEYS[2], tonumber(ARGV[2]))}
