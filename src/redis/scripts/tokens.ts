import { defineScript } from '../script.ts';

/** Keeps a value under a token until a moment. KEYS: values, times. ARGV: deadline, token, value, ms, most that wait. Answers `ok` or `full`. */
export const ISSUE_TOKEN = defineScript('issue_token', `
for _, old in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('HDEL', KEYS[1], old)
  redis.call('ZREM', KEYS[2], old)
end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then return {'full'} end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[2], now + ARGV[4], ARGV[2])
return {'ok'}
`);

/** Reads the value. KEYS: values, times. ARGV: deadline, token. Answers `ok` and the value, or `none`. */
export const PEEK_TOKEN = defineScript('peek_token', `
local value, until_ = redis.call('HGET', KEYS[1], ARGV[2]), redis.call('ZSCORE', KEYS[2], ARGV[2])
if value and until_ and tonumber(until_) > now then return {'ok', value} end
return {'none'}
`);

/** Takes the value out. KEYS: values, times. ARGV: deadline, token. Answers `ok` and the value, or `none`. */
export const REDEEM_TOKEN = defineScript('redeem_token', `
local value, until_ = redis.call('HGET', KEYS[1], ARGV[2]), redis.call('ZSCORE', KEYS[2], ARGV[2])
redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
if value and until_ and tonumber(until_) > now then return {'ok', value} end
return {'none'}
`);
