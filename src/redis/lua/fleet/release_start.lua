-- Records that a start of a worker cluster is no longer linked to a replica of the manager.
--
-- KEYS: starts
-- ARGV: deadline, replica, cluster, start
-- Returns: `ok`
-- Guarantees: does not change links of other replicas or other starts.

--- @include "deadline"
--- @include "cluster_starts"

local replica, cluster, start = ARGV[2], ARGV[3], ARGV[4]
local entry = start_of(cluster)
if entry and entry.start == start then
  entry.linked[replica] = nil
  if next(entry.linked) then
    keep_start(cluster, entry)
  else
    redis.call('HDEL', KEYS[1], cluster)
  end
end
return {'ok'}
