-- Forgets some of the owner that has most, those that ended first, where that owner or all together
-- have more bytes than they may.
--
-- KEYS: history
-- ARGV: deadline, the most bytes of an owner, of all, the most at once
-- Returns: `ok` and how many
-- Guarantees: may be repeated; nobody is trimmed for the bytes of an owner that has more.

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
