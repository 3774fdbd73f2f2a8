-- Deletes old entries of the owner with the most bytes, those that ended first, if that owner or
-- the total exceeds its limit.
--
-- KEYS: history
-- ARGV: deadline, the maximum bytes of an owner, of all, the maximum number of entries
-- Returns: `ok` and the number of deleted entries
-- Guarantees: may be repeated; deletes only entries of the owner with the most bytes.

--- @include "deadline"
--- @include "history_forget"

local loudest = redis.call('ZREVRANGE', base .. ':shares', 0, 0, 'WITHSCORES')
local all = tonumber(redis.call('GET', base .. ':bytes') or 0)
if
  not loudest[1] or tonumber(loudest[2]) <= tonumber(ARGV[2]) and all <= tonumber(ARGV[3])
then
  return {'ok', 0}
end
local first = redis.call('ZRANGE', base .. ':owner:' .. loudest[1] .. ':ended', 0, ARGV[4] - 1)
return {'ok', forget(first)}
