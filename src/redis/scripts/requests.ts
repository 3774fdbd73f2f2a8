import { defineScript, RUN } from '../script.ts';

/**
 * A request is a hash: `body`, while in flight `owner` and `until` (by when its owner must have said that it lives), `instance` (that it may
 * claim), and at last `answer`. KEYS: request, requests of the tenant.
 */

/**
 * Functions; after RUN. `open_request(request, requests of the tenant, arguments of OPEN_REQUEST)` opens a request and gives its
 * answer. `known_for_long(usage)` tells whether the tenant's requests, too, are what they were a minute ago.
 */
export const OPENING = `
local LOOK_MS = 60000
local function known_for_long(usage)
  local of, since = unpack(redis.call('HMGET', usage, ':run', ':since'))
  return of == run and now - tonumber(since or 0) >= LOOK_MS
end
local function open_request(request, requests, body, owner, lease, kept, most)
  local known, until_, instance, answer = unpack(redis.call('HMGET', request, 'body', 'until', 'instance', 'answer'))
  if answer then
    if known ~= body then return 'reused', '' end
    return 'answered', answer
  end
  if known and tonumber(until_) > now then return known == body and 'in-flight' or 'reused', '' end
  redis.call('DEL', request)
  redis.call('HSET', request, 'body', body, 'owner', owner, 'until', now + lease)
  if instance then redis.call('HSET', request, 'instance', instance) end
  redis.call('PEXPIRE', request, kept)
  redis.call('ZREMRANGEBYSCORE', requests, '-inf', now)
  redis.call('ZADD', requests, now + kept, request)
  redis.call('PEXPIRE', requests, kept, 'GT')
  if redis.call('PTTL', requests) < 0 then redis.call('PEXPIRE', requests, kept) end
  local over = redis.call('ZCARD', requests) - most
  if over > 0 then
    for _, old in ipairs(redis.call('ZRANGE', requests, 0, over - 1)) do redis.call('DEL', old) end
    redis.call('ZREMRANGEBYRANK', requests, 0, over - 1)
  end
  return 'new', instance or ''
end
`;

/**
 * Opens it where nobody living has it. KEYS: and the tenant's usage of sandboxes. ARGV: deadline, body, owner, ms that it is the owner's, ms that it is kept, most requests of the tenant.
 * Answers `new`, the instance that a former owner named or '', and `unsure` where requests were lost a moment ago; `in-flight`;
 * `reused`; `answered` and the answer.
 */
export const OPEN_REQUEST = defineScript('open_request', `${RUN}${OPENING}
local kind, more = open_request(KEYS[1], KEYS[2], unpack(ARGV, 2))
return { kind, more, known_for_long(KEYS[3]) and '' or 'unsure' }
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
if redis.call('PTTL', KEYS[2]) < 0 then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
return {'ok'}
`);

/**
 * Gives it up, if it is the owner's: it is nobody's. It is forgotten unless it names an instance: what
 * it claimed may have landed, and who opens it next is to look, as its mirror may not show that yet.
 * ARGV: deadline, owner. Answers `ok`. May be repeated.
 */
export const GIVE_UP_REQUEST = defineScript('give_up_request', `
if redis.call('HGET', KEYS[1], 'owner') == ARGV[2] then
  if redis.call('HEXISTS', KEYS[1], 'instance') == 1 then
    redis.call('HDEL', KEYS[1], 'owner')
    redis.call('HSET', KEYS[1], 'until', 0)
  else
    redis.call('DEL', KEYS[1])
    redis.call('ZREM', KEYS[2], KEYS[1])
  end
end
return {'ok'}
`);
