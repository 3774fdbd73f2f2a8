-- Sessions of the console in the hash KEYS[1], by id: operator, times (opened, seen, ends), idle
-- timeout in ms, value.
local function decoded(text)
  local entry = cjson.decode(text)
  return entry, now < entry.endsAt and now - entry.seenAt < entry.idleMs
end
local function shown(id, entry)
  return cjson.encode({id = id, operator = entry.operator, value = entry.value,
    openedAt = entry.openedAt, seenAt = entry.seenAt, endsAt = entry.endsAt})
end
-- Calls `visit` for each valid session, and deletes the others.
local function each_session(visit)
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local entry, is_good = decoded(all[i + 1])
    if is_good then visit(all[i], entry) else redis.call('HDEL', KEYS[1], all[i]) end
  end
end
