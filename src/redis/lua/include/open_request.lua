-- Opens a request, and tells whether requests may have been lost.

--- @include "run"
--- @include "forget_requests"

-- Returns whether the tenant's usage, and so its requests too, are what they were a minute ago.
local LOOK_MS = 60000
local function known_for_long(usage)
  local of, since = unpack(redis.call('HMGET', usage, ':run', ':since'))
  return of == run and now - tonumber(since or 0) >= LOOK_MS
end

-- Returns what the operation open_request does, save whether requests were lost.
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
