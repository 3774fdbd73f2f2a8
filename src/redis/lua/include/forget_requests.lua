-- A request is a hash: `body`; while in progress `owner`, `until` (deadline of the owner's next
-- heartbeat), `instance` (the instance to claim) and `place` (the place that it was sent to); at
-- the end `answer`. Each tenant also has `requests`, ordered by expiry time, and `answers`, the
-- bytes of each answer and their sum `:bytes`.
local FORGOTTEN_AT_ONCE = 100

-- Deletes a request and its bytes.
local function forget_request(request, requests, answers)
  redis.call('DEL', request)
  redis.call('ZREM', requests, request)
  local bytes = redis.call('HGET', answers, request)
  if not bytes then return end
  redis.call('HDEL', answers, request)
  redis.call('HINCRBY', answers, ':bytes', -bytes)
end

-- Deletes some expired requests.
local function forget_old(requests, answers)
  for _, old in ipairs(
    redis.call('ZRANGEBYSCORE', requests, '-inf', now, 'LIMIT', 0, FORGOTTEN_AT_ONCE)
  ) do
    forget_request(old, requests, answers)
  end
  if redis.call('EXISTS', requests) == 0 then redis.call('DEL', answers) end
end

-- Deletes some answers, oldest first, while they exceed `most` bytes. Returns the remaining bytes.
local function forget_oldest(requests, answers, most)
  local from, forgotten, bytes = 0, 0, tonumber(redis.call('HGET', answers, ':bytes') or 0)
  while bytes > most and forgotten < FORGOTTEN_AT_ONCE do
    local old = redis.call('ZRANGE', requests, from, from)[1]
    if not old then break end
    if redis.call('HEXISTS', answers, old) == 1 then
      forget_request(old, requests, answers)
      forgotten = forgotten + 1
      bytes = tonumber(redis.call('HGET', answers, ':bytes'))
    else
      from = from + 1 -- has no answer
    end
  end
  return bytes
end
