-- Records which start of each worker cluster is linked to a replica of the manager.
--
-- KEYS: starts
-- ARGV: deadline, replica, validity of a link in ms, validity of another start's request in ms,
-- then for each cluster its id and the start
-- Returns: `ok`, then for each cluster the linked start, and `wanted` if another start has recently
-- asked to link, otherwise ''
-- Guarantees: at most one start of a cluster is linked at a time, over all replicas.

--- @include "deadline"
--- @include "cluster_starts"

local replica, held_ms, wanted_ms = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local answer = {'ok'}
for at = 5, #ARGV, 2 do
  local cluster, start = ARGV[at], ARGV[at + 1]
  local entry, is_linked = start_of(cluster)
  if not entry or entry.start ~= start and not is_linked then
    entry = {start = start, wantedAt = 0, linked = {}}
  end
  if entry.start == start then
    entry.linked[replica] = now + held_ms
  else
    entry.wantedAt = now
  end
  keep_start(cluster, entry)
  answer[#answer + 1] = entry.start
  answer[#answer + 1] = now - entry.wantedAt < wanted_ms and 'wanted' or ''
end
redis.call('PEXPIRE', KEYS[1], 3600000)
return answer
