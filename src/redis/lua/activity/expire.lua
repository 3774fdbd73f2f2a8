-- Returns whether nothing happened in a sandbox for as long as its idle timeout.
--
-- KEYS: marks, the sandbox's set of replicas at work
-- ARGV: deadline, sandbox, idle timeout in ms, claimed at, ms since an activity that was not noted
-- yet or '', ms within which replicas note their work again
-- Returns: `expired`; `active` and the time of the last activity: now where a replica is at work,
-- or where marks were lost and work may not have been noted again yet; else the latest of claim,
-- mark and `:since`
-- Guarantees: never `expired` within the idle timeout of an activity that was noted, also after
-- marks were lost.

--- @include "deadline"
--- @include "activity_marks"

local since, id = since_of(KEYS[1]), ARGV[2]
if ARGV[5] ~= '' then mark(KEYS[1], id, tonumber(ARGV[5])) end
local now_ms = string.format('%d', now)
if redis.call('ZCOUNT', KEYS[2], now, '+inf') > 0 then return {'active', now_ms} end
local active = math.max(since, tonumber(ARGV[4]), tonumber(redis.call('HGET', KEYS[1], id) or 0))
if now - active >= tonumber(ARGV[3]) then
  if now - since < tonumber(ARGV[6]) then return {'active', now_ms} end
  return {'expired'}
end
return {'active', string.format('%d', active)}
