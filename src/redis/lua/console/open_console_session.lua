-- Opens a session of the console.
--
-- KEYS: sessions
-- ARGV: deadline, id, operator, value, idle timeout in ms, lifetime in ms, the session that it
-- replaces or '', the maximum of one person, of all
-- Returns: `ok`; `full`
-- Guarantees: enforces both limits; beyond a person's limit, that person's oldest session ends; the
-- replaced session has ended.

--- @include "deadline"
--- @include "console_sessions"

if ARGV[7] ~= '' then redis.call('HDEL', KEYS[1], ARGV[7]) end
local total, own = 0, {}
each_session(function(id, entry)
  total = total + 1
  if entry.operator == ARGV[3] then table.insert(own, {id = id, at = entry.openedAt}) end
end)
table.sort(own, function(a, b) return a.at < b.at end)
for i = 1, #own - tonumber(ARGV[8]) + 1 do
  redis.call('HDEL', KEYS[1], own[i].id)
  total = total - 1
end
if total >= tonumber(ARGV[9]) then return {'full'} end
redis.call('HSET', KEYS[1], ARGV[2], cjson.encode({
  operator = ARGV[3], value = ARGV[4], idleMs = tonumber(ARGV[5]),
  openedAt = now, seenAt = now, endsAt = now + tonumber(ARGV[6]),
}))
return {'ok'}
