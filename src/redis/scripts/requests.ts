import { defineScript } from '../script.ts';

/**
 * A request is a hash: `body`, while in flight `owner` and `until` (by when its owner must have said that it lives), `instance` (that it may
 * claim), and at last `answer`. KEYS: request, requests of the tenant.
 */

/**
 * Opens it where nobody living has it. ARGV: deadline, body, owner, ms that it is the owner's, ms that it is kept, most requests of the tenant.
 * Answers `new` and the instance that a former owner named or ''; `in-flight`; `reused`; `answered` and the answer.
 */
export const OPEN_REQUEST = defineScript('open_request', `
local body, until_, instance, answer = unpack(redis.call('HMGET', KEYS[1], 'body', 'until', 'instance', 'answer'))
if answer then
  if body ~= ARGV[2] then return {'reused'} end
  return {'answered', answer}
end
if body and tonumber(until_) > now then return { body == ARGV[2] and 'in-flight' or 'reused' } end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'body', ARGV[2], 'owner', ARGV[3], 'until', now + ARGV[4])
if instance then redis.call('HSET', KEYS[1], 'instance', instance) end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + ARGV[5], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[5], 'GT')
if redis.call('PTTL', KEYS[2]) < 0 then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
local over = redis.call('ZCARD', KEYS[2]) - ARGV[6]
if over > 0 then
  for _, old in ipairs(redis.call('ZRANGE', KEYS[2], 0, over - 1)) do redis.call('DEL', old) end
  redis.call('ZREMRANGEBYRANK', KEYS[2], 0, over - 1)
end
return {'new', instance or ''}
`);

/** Its owner lives. ARGV: deadline, owner, ms. Answers `ok`, or `lost`. */
export const HOLD_REQUEST = defineScript('hold_request', `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[2] then return {'lost'} end
redis.call('HSET', KEYS[1], 'until', now + ARGV[3])
return {'ok'}
`);

/** Keeps its answer, unless another owner has it now. ARGV: deadline, owner, body, answer, ms that it is kept. Answers `ok`, or `lost`. May be repeated. */
export const KEEP_ANSWER = defineScript('keep_answer', `
local owner, answer = unpack(redis.call('HMGET', KEYS[1], 'owner', 'answer'))
if answer or (owner and owner ~= ARGV[2]) then return {'lost'} end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'body', ARGV[3], 'answer', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], now + ARGV[5], KEYS[1])
return {'ok'}
`);

/** Forgets it, if it is the owner's. ARGV: deadline, owner. Answers `ok`. May be repeated. */
export const GIVE_UP_REQUEST = defineScript('give_up_request', `
if redis.call('HGET', KEYS[1], 'owner') == ARGV[2] then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], KEYS[1])
end
return {'ok'}
`);
