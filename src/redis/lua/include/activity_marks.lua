-- Times of sandboxes' last activity. The marks of a bucket are one hash, so they can only be lost
-- together: by sandbox the last activity in ms, and `:since`, the time since which the marks are
-- complete. `:since` starts again if it is missing, or if the server is another run than `:run`,
-- since that run may have lost the latest marks.

--- @include "run"

-- Returns `:since`.
local function since_of(key)
  local of, since = unpack(redis.call('HMGET', key, ':run', ':since'))
  if of == run then return tonumber(since) end
  redis.call('HSET', key, ':run', run, ':since', now)
  return now
end

-- Records activity `age` ms ago; the latest activity wins.
local function mark(key, id, age)
  local at = now - age
  if at > tonumber(redis.call('HGET', key, id) or 0) then
    redis.call('HSET', key, id, string.format('%d', at))
  end
end
