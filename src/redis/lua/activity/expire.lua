-- Returns whether a sandbox was inactive for its idle timeout.
--
-- KEYS: marks, the sandbox's set of replicas at work
-- ARGV: deadline, sandbox, idle timeout in ms, claim time, ms since an unrecorded activity or '',
-- ms within which replicas renew the record of their work
-- Returns: `expired`; `active` and the time of the last activity. That time is now if a replica is
-- at work, or if marks were lost and work may not be recorded again yet. Otherwise it is the latest
-- of claim, mark and `:since`
-- Guarantees: never `expired` within the idle timeout of a recorded activity, even after marks were
-- lost.

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
