-- Admits a claim: opens its request, enforces the order of waiting claims, and reserves a sandbox
-- in the tenant's quota.
--
-- KEYS: usage, unsettled, order, seen[, request[, requests, answers]]
-- ARGV: deadline, holder (`replica/attempt`), instance, limit, instance whose reservation to
-- withdraw or '', owner of the request or '', number of idle instances, member or '', its time or
-- '', `looked` or ''[, from the 11th on the arguments of open_request: body, owner, lease, kept,
-- most]
-- Returns:
--   `ok`       reserved, and the request names the instance
--   `full`     the quota is used up
--   `later`    earlier claims have a right to the idle instances
--   `opened`   and the result of open_request: the request is not new, or names an instance or
--              place
--   `unknown`  the usage is unknown; the request may have been opened
--   `look`     the usage was rebuilt recently, and the caller has not yet searched for an earlier
--              claim of the request; the request was opened, and the old reservation withdrawn
--   `taken`    the request has another owner; the old reservation was withdrawn
-- Guarantees: admits claims in the order of their arrival; a request names its instance before
-- anything is claimed for it; the same holder may repeat it.

--- @include "deadline"
--- @include "run"
--- @include "usage_entry"
--- @include "forget_requests"
--- @include "open_request"
--- @include "waiting_order"

-- An earlier claim may have left the order for the instance while its write is in progress. Waits
-- no longer than this for such a write.
local TRIED_MS = 1000
local function tried_by_another(usage, times, name, replica)
  local entry = entry_of(usage, name)
  for _, part in ipairs(entry and entry.open or {}) do
    if string.match(part.holder, '^[^/]*') ~= replica then
      return now - redis.call('ZSCORE', times, name) < TRIED_MS
    end
  end
  return false
end

local usage, times, order, seen, request = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local holder, name, limit, from, owner = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local idle, member, at = tonumber(ARGV[7]), ARGV[8], ARGV[9]
if ARGV[11] then
  local kind, more, place = open_request(request, KEYS[6], KEYS[7], unpack(ARGV, 11))
  if kind ~= 'new' or more ~= '' or place ~= '' then return {'opened', kind, more, place} end
end
if redis.call('HGET', usage, ':run') ~= run then return {'unknown'} end
if from ~= '' then withdraw(usage, times, from, holder) end
if owner ~= '' and redis.call('HGET', request, 'owner') ~= owner then return {'taken'} end
if owner ~= '' and ARGV[10] == '' and not known_for_long(usage) then return {'look'} end
local before = living(order, seen, member == '' and '+inf' or '(' .. at)
local count = #before
if count >= idle and lets_lie(seen, before[1]) then
  redis.call('ZREM', order, before[1])
  count = count - 1
end
if
  count >= idle
  or member ~= '' and tried_by_another(usage, times, name, string.match(holder, '^[^/]*'))
then
  if member ~= '' then redis.call('ZADD', order, at, member) end
  remember(order, seen)
  return {'later'}
end
if not reserve(usage, times, { name = name, amount = 1, limit = limit, holder = holder }) then
  return {'full'}
end
if member ~= '' then redis.call('ZREM', order, member) end
if owner ~= '' then redis.call('HSET', request, 'instance', name) end
return {'ok'}
