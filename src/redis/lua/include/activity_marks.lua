-- When sandboxes were last active. The marks of a bucket are one hash, so that they are lost
-- together: by sandbox the last activity in ms; `:since` is the time since which they are whole,
-- begun anew where they are missing or the server is another run than `:run`, which may have lost
-- the last of them.

--- @include "run"

-- Returns `:since`.
local function since_of(key)
  local of, since = unpack(redis.call('HMGET', key, ':run', ':since'))
  if of == run then return tonumber(since) end
  redis.call('HSET', key, ':run', run, ':since', now)
  return now
end

-- Notes activity `age` ms ago; the latest stands.
local function mark(key, id, age)
  local at = now - age
  if at > tonumber(redis.call('HGET', key, id) or 0) then
    redis.call('HSET', key, id, string.format('%d', at))
  end
end
