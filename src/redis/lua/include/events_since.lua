-- Events are a stream, each under its number as `number-0`. `seen` is a sorted set of the latest
-- keys by number. `state` is a hash: `last`, the last number; `:since`, the number up to which
-- events may be missing. `:since` starts again if it is missing, or if the server is another run
-- than `:run`, since that run may have lost some or all events.

--- @include "run"

-- Returns `:since`.
local function since_of(key)
  local of, since, last = unpack(redis.call('HMGET', key, ':run', ':since', 'last'))
  if of == run then return since end
  since = string.format('%d', math.max(tonumber(last or 0), now * 1000))
  redis.call('HSET', key, ':run', run, ':since', since, 'last', since)
  return since
end
