-- Events are a stream, each under its number as `number-0`. `seen` is a sorted set of the keys
-- under which the last were added, by number. `state` is a hash: `last`, the last number given;
-- `:since`, up to which some are not there, begun anew where it is missing or the server is another
-- run than `:run`, which may have lost the last of them, or all.

--- @include "run"

-- Returns `:since`.
local function since_of(key)
  local of, since, last = unpack(redis.call('HMGET', key, ':run', ':since', 'last'))
  if of == run then return since end
  since = string.format('%d', math.max(tonumber(last or 0), now * 1000))
  redis.call('HSET', key, ':run', run, ':since', since, 'last', since)
  return since
end
