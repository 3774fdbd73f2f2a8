-- Reserves an amount of a tenant's usage for a name, unless the usage would exceed the limit.
--
-- KEYS: usage, unsettled
-- ARGV: deadline, holder (`replica/attempt`), name, amount, limit
-- Returns: `ok`; `full`; `unknown` if the usage is unknown, and nothing changes
-- Guarantees: concurrent reservations never exceed the limit together; the same holder may repeat
-- it.

--- @include "deadline"
--- @include "run"
--- @include "usage_entry"

if redis.call('HGET', KEYS[1], ':run') ~= run then return {'unknown'} end
local reserved = reserve(KEYS[1], KEYS[2], {
  holder = ARGV[2], name = ARGV[3], amount = tonumber(ARGV[4]), limit = tonumber(ARGV[5])
})
return { reserved and 'ok' or 'full' }
