-- Takes one step of a walk through all groups.
--
-- KEYS: history
-- ARGV: deadline, cursor, number of groups to read, the time, a Lua pattern for their names
-- Returns: `ok`, the next cursor (0 after the last), then for each matching group: number, name,
-- and how many of its sandboxes ended at or after the time
-- Guarantees: a complete walk returns every group that existed throughout, some perhaps twice;
-- changes nothing.

--- @include "deadline"

local base = KEYS[1]
local found = redis.call('HSCAN', base .. ':groups', ARGV[2], 'COUNT', ARGV[3])
local answer = {'ok', found[1]}
for i = 1, #found[2], 2 do
  local name, group = found[2][i], found[2][i + 1]
  if string.match(name, ARGV[5]) then
    answer[#answer + 1] = group
    answer[#answer + 1] = name
    answer[#answer + 1] =
      redis.call('ZCOUNT', base .. ':group:' .. group .. ':ended', ARGV[4], '+inf')
  end
end
return answer
