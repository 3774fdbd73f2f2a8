-- Only the hash of a token is stored. KEYS: tokens, times, counts. A token's entry is a JSON list:
-- the sandbox and the tenant that it counts for, and its value. Each redeemed or expired token
-- lowers the counts. Without tokens, the counts are deleted, which also corrects wrong counts.

-- Returns the entry, and whether it is still valid.
local function entry_of(token)
  local entry, until_ = redis.call('HGET', KEYS[1], token), redis.call('ZSCORE', KEYS[2], token)
  return entry and cjson.decode(entry), until_ and tonumber(until_) > now
end

local function forget(token, entry)
  redis.call('HDEL', KEYS[1], token)
  redis.call('ZREM', KEYS[2], token)
  for n = 1, entry and 2 or 0 do
    if redis.call('HINCRBY', KEYS[3], entry[n], -1) <= 0 then
      redis.call('HDEL', KEYS[3], entry[n])
    end
  end
  if redis.call('ZCARD', KEYS[2]) == 0 then redis.call('DEL', KEYS[1], KEYS[3]) end
end
