import { defineScript } from '../script.ts';

/**
 * A token is known by its hash alone. KEYS: tokens, times, counts. A token's entry is a JSON list:
 * the sandbox and the tenant that it is counted for, and its value. Counts go down with each token
 * that is redeemed or too old, and are gone where no token is left, so that a count that something
 * else lost or kept is right again then.
 */
const FORGETTING = `
local function entry_of(token)
  local entry, until_ = redis.call('HGET', KEYS[1], token), redis.call('ZSCORE', KEYS[2], token)
  return entry and cjson.decode(entry), until_ and tonumber(until_) > now
end
local function forget(token, entry)
  redis.call('HDEL', KEYS[1], token)
  redis.call('ZREM', KEYS[2], token)
  for n = 1, entry and 2 or 0 do
    if redis.call('HINCRBY', KEYS[3], entry[n], -1) <= 0 then redis.call('HDEL', KEYS[3], entry[n]) end
  end
  if redis.call('ZCARD', KEYS[2]) == 0 then redis.call('DEL', KEYS[1], KEYS[3]) end
end
`;

/**
 * Keeps a value under a token until a moment. ARGV: deadline, token, value, ms, sandbox, tenant,
 * most of a sandbox, of a tenant, of all. Answers `ok`, or whose limit is met: `sandbox`, `tenant`,
 * `all`; tokens that are too old count for none.
 */
export const ISSUE_TOKEN = defineScript(
  'issue_token',
  `${FORGETTING}
local function is_full(of, most) return tonumber(redis.call('HGET', KEYS[3], of) or 0) >= tonumber(most) end
local function limit_met()
  if is_full(ARGV[5], ARGV[7]) then return 'sandbox' end
  if is_full(ARGV[6], ARGV[8]) then return 'tenant' end
  if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[9]) then return 'all' end
end
local met
repeat
  local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)
  for _, token in ipairs(old) do forget(token, (entry_of(token))) end
  met = limit_met()
until not met or #old == 0
if met then return {met} end
redis.call('HSET', KEYS[1], ARGV[2], cjson.encode({ARGV[5], ARGV[6], ARGV[3]}))
redis.call('ZADD', KEYS[2], now + ARGV[4], ARGV[2])
redis.call('HINCRBY', KEYS[3], ARGV[5], 1)
redis.call('HINCRBY', KEYS[3], ARGV[6], 1)
return {'ok'}
`,
);

/** Reads the value. ARGV: deadline, token. Answers `ok` and the value, or `none`. */
export const PEEK_TOKEN = defineScript(
  'peek_token',
  `${FORGETTING}
local entry, is_good = entry_of(ARGV[2])
if entry and is_good then return {'ok', entry[3]} end
return {'none'}
`,
);

/** Takes the value out. ARGV: deadline, token. Answers `ok` and the value, or `none`. */
export const REDEEM_TOKEN = defineScript(
  'redeem_token',
  `${FORGETTING}
local entry, is_good = entry_of(ARGV[2])
if entry then forget(ARGV[2], entry) end
if entry and is_good then return {'ok', entry[3]} end
return {'none'}
`,
);
