/**
 * A tenant's usage of one resource is a hash: by name `amount|version|holders`, beside `:total`, `:version` (the last one given) and `:run`
 * (of the server that is known to have it whole). Holders are the replicas whose reservation it is, each once.
 */
export const USAGE_ENTRY = `
local function entry_of(key, name)
  local text = redis.call('HGET', key, name)
  if not text then return nil end
  local amount, version, holders = string.match(text, '^(%d+)|(%d+)|(.*)$')
  return { amount = tonumber(amount), version = version, holders = holders }
end
local function without(holders, gone)
  local left = {}
  for holder in string.gmatch(holders, '[^,]+') do
    if holder ~= gone then left[#left + 1] = holder end
  end
  return table.concat(left, ',')
end
local function drop(key, times, name, amount)
  redis.call('HDEL', key, name)
  redis.call('ZREM', times, name)
  redis.call('HINCRBY', key, ':total', 0 - amount)
end
local function withdraw(key, times, name, holder)
  local entry = entry_of(key, name)
  if not entry then return end
  local left = without(entry.holders, holder)
  if left == entry.holders then return end
  if left == '' then drop(key, times, name, entry.amount)
  else redis.call('HSET', key, name, entry.amount .. '|' .. entry.version .. '|' .. left) end
end
local function reserve(key, times, part)
  local entry = entry_of(key, part.name) or { amount = 0, holders = '' }
  local grown = part.amount - entry.amount
  if grown > 0 and tonumber(redis.call('HGET', key, ':total')) + grown > part.limit then return false end
  local holders = without(entry.holders, part.holder)
  holders = holders == '' and part.holder or holders .. ',' .. part.holder
  redis.call('HSET', key, part.name, part.amount .. '|' .. redis.call('HINCRBY', key, ':version', 1) .. '|' .. holders)
  redis.call('HINCRBY', key, ':total', grown)
  redis.call('ZADD', times, now, part.name)
  return true
end
`;
