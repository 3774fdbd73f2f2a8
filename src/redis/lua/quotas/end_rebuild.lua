-- Replaces a tenant's unknown usage with the records' amounts.
--
-- KEYS: rebuild, then usage and unsettled of each resource in turn
-- ARGV: deadline, token, then for each resource the number of its names, and for each name: name,
-- amount, revision
-- Returns: `known`; `lost` if the rebuild was lost in the meantime
-- Guarantees: does not change a known usage; after `lost` nothing has changed.

--- @include "deadline"
--- @include "is_known"

local token, of = string.match(redis.call('GET', KEYS[1]) or '', '^%d+|([^|]*)|(.*)$')
local begun, lacks, at = of == run and token == ARGV[2], false, 3
for i = 2, #KEYS, 2 do
  local usage, count = KEYS[i], tonumber(ARGV[at])
  if not is_known(usage) then
    lacks = true
    if begun then
      redis.call('DEL', usage, KEYS[i + 1])
      local total = 0
      for part = at + 1, at + count * 3, 3 do
        local amount = ARGV[part + 1]
        redis.call('HSET', usage, ARGV[part], amount .. '|0|' .. amount .. '@' .. ARGV[part + 2])
        total = total + amount
      end
      redis.call('HSET', usage, ':run', run, ':since', now, ':total', total, ':version', now)
    end
  end
  at = at + 1 + count * 3
end
if begun then redis.call('DEL', KEYS[1]) end
return { (begun or not lacks) and 'known' or 'lost' }
