-- Starts of worker clusters' daemons in the hash KEYS[1], by cluster: the start, the time when
-- another start last asked to link, and for each linked replica the time when its link expires.
local function start_of(cluster)
  local text = redis.call('HGET', KEYS[1], cluster)
  if not text then return nil, false end
  local entry, is_linked = cjson.decode(text), false
  for name, ends in pairs(entry.linked) do
    if ends > now then is_linked = true else entry.linked[name] = nil end
  end
  return entry, is_linked
end
local function keep_start(cluster, entry)
  redis.call('HSET', KEYS[1], cluster, cjson.encode(entry))
end
