-- Tells how a request with an idempotency key stands.
--
-- KEYS: request
-- ARGV: deadline, body
-- Returns: a kind, and the answer where there is one.
--   `none`       it is nobody's
--   `in-flight`  a living owner has it
--   `reused`     it has another body
--   `answered`   and the answer
-- Guarantees: changes nothing.

--- @include "deadline"

local known, until_, answer = unpack(redis.call('HMGET', KEYS[1], 'body', 'until', 'answer'))
if not answer and not (known and tonumber(until_) > now) then return {'none'} end
if known ~= ARGV[2] then return {'reused'} end
if answer then return {'answered', answer} end
return {'in-flight'}
