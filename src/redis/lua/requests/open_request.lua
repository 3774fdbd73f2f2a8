-- Opens a request with an idempotency key, unless a live owner has it.
--
-- KEYS: request, requests of the tenant, bytes of their answers, the tenant's usage of sandboxes
-- ARGV: deadline, body, owner, length of the lease in ms, ms for which it is stored, the tenant's
-- maximum number of requests
-- Returns: a kind, its value, the place of the request or '', and `unsure` if requests may have
-- been lost recently, otherwise ''.
--   `new`        and the instance of a former owner, or ''
--   `in-flight`  another owner has it
--   `reused`     it has another body
--   `answered`   and the answer
-- Guarantees: a request has at most one live owner.

--- @include "deadline"
--- @include "run"
--- @include "forget_requests"
--- @include "open_request"

local kind, more, place = open_request(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV, 2))
return { kind, more, place, known_for_long(KEYS[4]) and '' or 'unsure' }
