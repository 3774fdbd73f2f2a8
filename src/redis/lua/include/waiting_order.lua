-- The claims that wait for an instance of a pool are a sorted set `order` of `id|replica`, by
-- arrival time in microseconds; times are unique. The hash `seen` holds each replica's last
-- heartbeat. Its fields `:front`, `:since` and `:last` record who was first while others saw idle
-- instances, since when, and when last. Both expire when nobody waits.
local DEAD_MS, KEPT_MS, AGAIN_MS = 3000, 60000, 1000

local function remember(order, seen)
  redis.call('PEXPIRE', order, KEPT_MS)
  redis.call('PEXPIRE', seen, KEPT_MS)
end

local function number(score) return string.format('%d', score) end

-- Returns the claims of live replicas up to a time, in order. Removes the others.
local function living(order, seen, before)
  local alive, known = {}, {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', order, '-inf', before)) do
    local replica = string.match(member, '^[^|]*|(.*)$')
    if known[replica] == nil then
      known[replica] = tonumber(redis.call('HGET', seen, replica) or 0) > now - DEAD_MS
    end
    if known[replica] then
      alive[#alive + 1] = member
    else
      redis.call('ZREM', order, member)
    end
  end
  return alive
end

-- Returns whether the first claim has left idle instances unused for long.
local function lets_lie(seen, front)
  local of, since, last = unpack(redis.call('HMGET', seen, ':front', ':since', ':last'))
  if of ~= front or now - last > AGAIN_MS then since = now end
  redis.call('HSET', seen, ':front', front, ':since', since, ':last', now)
  return now - since >= DEAD_MS
end
