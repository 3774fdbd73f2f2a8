-- Begins to rebuild a tenant's usage from the records, or joins a rebuild in progress.
--
-- KEYS: rebuild, then the usage of each resource
-- ARGV: deadline, a new token, ms to wait
-- Returns: `known` if nothing is missing; `wait`, the ms until the records may be read, and the
-- token that ends the rebuild
-- Guarantees: all callers within 20 s on one run of the server receive the same token.

--- @include "deadline"
--- @include "is_known"

local lacks = false
for i = 2, #KEYS do lacks = lacks or not is_known(KEYS[i]) end
if not lacks then return {'known'} end
local began, token, of = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)|([^|]*)|(.*)$')
if of ~= run then
  began, token = now, ARGV[2]
  redis.call('SET', KEYS[1], string.format('%d', now) .. '|' .. token .. '|' .. run, 'PX', 20000)
end
return {'wait', math.max(0, began + ARGV[3] - now), token}
