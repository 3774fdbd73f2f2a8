-- Deletes some of the tenant's oldest answers while they exceed a number of bytes.
--
-- KEYS: requests of the tenant, bytes of their answers
-- ARGV: deadline, the maximum bytes
-- Returns: `ok` and the remaining bytes
-- Guarantees: may be repeated; never deletes a request in progress.

--- @include "deadline"
--- @include "forget_requests"

forget_old(KEYS[1], KEYS[2])
return {'ok', forget_oldest(KEYS[1], KEYS[2], tonumber(ARGV[2]))}
