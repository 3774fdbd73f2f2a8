-- Opens a request, and detects a recent loss of requests.

--- @include "run"
--- @include "forget_requests"

-- Returns whether the tenant's usage was not rebuilt within a minute, so its requests are complete
-- too.
local LOOK_MS = 60000
local function known_for_long(usage)
  local of, since = unpack(redis.call('HMGET', usage, ':run', ':since'))
  return of == run and now - tonumber(since or 0) >= LOOK_MS
end

-- Returns the result of the operation open_request, except for `unsure`.
local function open_request(request, requests, answers, body, owner, lease, kept, most)
  local known, until_, instance, place, answer =
    unpack(redis.call('HMGET', request, 'body', 'until', 'instance', 'place', 'answer'))
  if (answer or place) and known ~= body then return 'reused', '', '' end
  if answer then return 'answered', answer, '' end
  if known and tonumber(until_) > now then
    return known == body and 'in-flight' or 'reused', '', ''
  end
  redis.call('DEL', request)
  redis.call('HSET', request, 'body', body, 'owner', owner, 'until', now + lease)
  if instance then redis.call('HSET', request, 'instance', instance) end
  if place then redis.call('HSET', request, 'place', place) end
  redis.call('PEXPIRE', request, kept)
  forget_old(requests, answers)
  redis.call('ZADD', requests, now + kept, request)
  redis.call('PEXPIRE', requests, kept, 'GT')
  if redis.call('PTTL', requests) < 0 then redis.call('PEXPIRE', requests, kept) end
  local over = redis.call('ZCARD', requests) - most
  if over > 0 then
    for _, old in ipairs(redis.call('ZRANGE', requests, 0, over - 1)) do
      forget_request(old, requests, answers)
    end
  end
  return 'new', instance or '', place or ''
end
