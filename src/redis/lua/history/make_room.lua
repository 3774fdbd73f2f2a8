-- Deletes old entries if Redis uses more than a share of its `maxmemory`: those that ended first,
-- of the owner with the most bytes. Deletes entries of any owner if a version that did not count
-- bytes recorded most of them.
--
-- KEYS: history
-- ARGV: deadline, the share, the maximum number
-- Returns: `ok`, the number of deleted entries, and the share in use as text (0 without a limit)
-- Guarantees: checks the memory atomically, so several replicas may run it at the same time.

--- @include "deadline"
--- @include "history_forget"

local info = redis.call('INFO', 'memory')
local used = tonumber(string.match(info, 'used_memory:(%d+)'))
local most = tonumber(string.match(info, 'maxmemory:(%d+)'))
if not most or most == 0 then return {'ok', 0, '0'} end
local share = used / most
if share <= tonumber(ARGV[2]) then return {'ok', 0, tostring(share)} end
local of, loudest = ':all', redis.call('ZREVRANGE', base .. ':shares', 0, 0)[1]
if
  loudest
  and redis.call('HLEN', base .. ':charges') * 2 >= redis.call('HLEN', base .. ':bodies')
then
  of = ':owner:' .. loudest
end
local first = redis.call('ZRANGE', base .. of .. ':ended', 0, ARGV[3] - 1)
return {'ok', forget(first), tostring(share)}
