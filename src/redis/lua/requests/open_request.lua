-- Opens a request with an idempotency key where no living owner has it.
--
-- KEYS: request, requests of the tenant, bytes of their answers, the tenant's usage of sandboxes
-- ARGV: deadline, body, owner, ms for which it is the owner's, ms for which it is kept, the most
-- requests of the tenant
-- Returns: a kind, more, where it went or '', and `unsure` where requests may have been lost a
-- moment ago, else ''.
--   `new`        and the instance that a former owner named, or ''
--   `in-flight`  another owner has it
--   `reused`     it has another body
--   `answered`   and the answer
-- Guarantees: at most one living owner has a request.

--- @include "deadline"
--- @include "run"
--- @include "forget_requests"
--- @include "open_request"

local kind, more, place = open_request(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV, 2))
return { kind, more, place, known_for_long(KEYS[4]) and '' or 'unsure' }
