-- A tenant's usage of one resource is a hash. It maps a name to `amount|version|parts`, and has
-- `:total`, `:version` (the last version), `:run` (the server's run on which it is complete) and
-- `:since` (the time when that was known). Commas separate the parts: `amount@revision` is the
-- record's amount at a revision, and `replica/attempt=amount` is a reservation. A name counts with
-- its largest part.
local function entry_of(key, name)
  local text = redis.call('HGET', key, name)
  if not text then return nil end
  local amount, version, parts = string.match(text, '^(%d+)|(%d+)|(.*)$')
  local entry = {
    amount = tonumber(amount), version = version, settled = 0, revision = '', open = {}
  }
  for part in string.gmatch(parts, '[^,]+') do
    local settled, revision = string.match(part, '^(%d+)@(%d*)$')
    if settled then
      entry.settled, entry.revision = tonumber(settled), revision
    else
      local holder, reserved = string.match(part, '^(.*)=(%d+)$')
      entry.open[#entry.open + 1] = { holder = holder, amount = tonumber(reserved) }
    end
  end
  return entry
end

local function without(open, holder)
  local left = {}
  for _, part in ipairs(open) do
    if part.holder ~= holder then left[#left + 1] = part end
  end
  return left
end

local function drop(key, times, name, amount)
  redis.call('HDEL', key, name)
  redis.call('ZREM', times, name)
  redis.call('HINCRBY', key, ':total', 0 - amount)
end

-- Writes an entry and updates the total. Deletes an entry without parts and revision.
local function put(key, times, name, entry)
  if #entry.open == 0 and entry.settled == 0 and entry.revision == '' then
    return drop(key, times, name, entry.amount)
  end
  local most, parts = entry.settled, {}
  if entry.settled > 0 or entry.revision ~= '' then
    parts[1] = string.format('%d@%s', entry.settled, entry.revision)
  end
  for _, part in ipairs(entry.open) do
    most = math.max(most, part.amount)
    parts[#parts + 1] = string.format('%s=%d', part.holder, part.amount)
  end
  if #entry.open == 0 then redis.call('ZREM', times, name) end
  redis.call(
    'HSET', key, name, string.format('%d|%s|%s', most, entry.version, table.concat(parts, ','))
  )
  redis.call('HINCRBY', key, ':total', most - entry.amount)
end

-- Withdraws one holder's reservation of a name.
local function withdraw(key, times, name, holder)
  local entry = entry_of(key, name)
  if not entry then return end
  local left = without(entry.open, holder)
  if #left == #entry.open then return end
  entry.open = left
  put(key, times, name, entry)
end

-- Reserves `part`: name, amount, limit and holder. Returns false and changes nothing if the total
-- would exceed the limit.
local function reserve(key, times, part)
  local entry = entry_of(key, part.name) or { amount = 0, settled = 0, revision = '', open = {} }
  local open = without(entry.open, part.holder)
  open[#open + 1] = part
  local most = entry.settled
  for _, each in ipairs(open) do most = math.max(most, each.amount) end
  local grown = most - entry.amount
  if grown > 0 and tonumber(redis.call('HGET', key, ':total')) + grown > part.limit then
    return false
  end
  entry.open, entry.version = open, redis.call('HINCRBY', key, ':version', 1)
  put(key, times, part.name, entry)
  redis.call('ZADD', times, now, part.name)
  return true
end
