import { defineScript, RUN } from '../script.ts';

/**
 * A request is a hash: `body`, while in flight `owner` and `until` (by when its owner must have
 * said that it lives), `instance` (that it may claim), and at last `answer`. KEYS: request,
 * requests of the tenant, bytes of their answers.
 */

/**
 * Functions. `forget_request` forgets one of the tenant's and its bytes, `forget_old` some of those
 * whose time has passed, `forget_oldest` so many answers at most until there are no more than so
 * many bytes; it gives the bytes that are left.
 */
export const FORGETTING = `
local FORGOTTEN_AT_ONCE = 100
local function forget_request(request, requests, answers)
  redis.call('DEL', request)
  redis.call('ZREM', requests, request)
  local bytes = redis.call('HGET', answers, request)
  if not bytes then return end
  redis.call('HDEL', answers, request)
  redis.call('HINCRBY', answers, ':bytes', -bytes)
end
local function forget_old(requests, answers)
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', requests, '-inf', now, 'LIMIT', 0, FORGOTTEN_AT_ONCE)) do
    forget_request(old, requests, answers)
  end
  if redis.call('EXISTS', requests) == 0 then redis.call('DEL', answers) end
end
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
      from = from + 1 -- in flight
    end
  end
  return bytes
end
`;

/**
 * Functions; after RUN and FORGETTING. `open_request(request, requests, answers, arguments of
 * OPEN_REQUEST)` opens a request and gives its answer. `known_for_long(usage)` tells whether the
 * tenant's requests, too, are what they were a minute ago.
 */
export const OPENING = `
local LOOK_MS = 60000
local function known_for_long(usage)
  local of, since = unpack(redis.call('HMGET', usage, ':run', ':since'))
  return of == run and now - tonumber(since or 0) >= LOOK_MS
end
local function open_request(request, requests, answers, body, owner, lease, kept, most)
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
  forget_old(requests, answers)
  redis.call('ZADD', requests, now + kept, request)
  redis.call('PEXPIRE', requests, kept, 'GT')
  if redis.call('PTTL', requests) < 0 then redis.call('PEXPIRE', requests, kept) end
  local over = redis.call('ZCARD', requests) - most
  if over > 0 then
    for _, old in ipairs(redis.call('ZRANGE', requests, 0, over - 1)) do forget_request(old, requests, answers) end
  end
  return 'new', instance or ''
end
`;

/**
 * Opens it where nobody living has it. KEYS: and the tenant's usage of sandboxes. ARGV: deadline,
 * body, owner, ms that it is the owner's, ms that it is kept, most requests of the tenant. Answers
 * `new`, the instance that a former owner named or '', and `unsure` where requests were lost a
 * moment ago; `in-flight`; `reused`; `answered` and the answer.
 */
export const OPEN_REQUEST = defineScript(
  'open_request',
  `${RUN}${FORGETTING}${OPENING}
local kind, more = open_request(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV, 2))
return { kind, more, known_for_long(KEYS[4]) and '' or 'unsure' }
`,
);

/** Its owner lives. ARGV: deadline, owner, ms. Answers `ok`, or `lost`. */
export const HOLD_REQUEST = defineScript(
  'hold_request',
  `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[2] then return {'lost'} end
redis.call('HSET', KEYS[1], 'until', now + ARGV[3])
return {'ok'}
`,
);

/**
 * Keeps its answer, unless another owner has it now; the tenant's oldest go where it has more bytes
 * of them than it may. ARGV: deadline, owner, body, answer, ms that it is kept, what it counts in
 * bytes, bytes that the tenant may have. Answers `ok` and the tenant's bytes, or `lost`. May be
 * repeated.
 */
export const KEEP_ANSWER = defineScript(
  'keep_answer',
  `${FORGETTING}
local owner, answer = unpack(redis.call('HMGET', KEYS[1], 'owner', 'answer'))
if answer or (owner and owner ~= ARGV[2]) then return {'lost'} end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'body', ARGV[3], 'answer', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], now + ARGV[5], KEYS[1])
if redis.call('PTTL', KEYS[2]) < 0 then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
local before = redis.call('HGET', KEYS[3], KEYS[1]) or 0
redis.call('HSET', KEYS[3], KEYS[1], ARGV[6])
redis.call('HINCRBY', KEYS[3], ':bytes', ARGV[6] - before)
redis.call('PEXPIRE', KEYS[3], ARGV[5])
return {'ok', forget_oldest(KEYS[2], KEYS[3], tonumber(ARGV[7]))}
`,
);

/**
 * Forgets the tenant's oldest answers until they have no more than so many bytes, some at once.
 * KEYS: requests of the tenant, bytes of their answers. ARGV: deadline, the bytes. Answers `ok` and
 * the bytes that are left.
 */
export const TRIM_ANSWERS = defineScript(
  'trim_answers',
  `${FORGETTING}
forget_old(KEYS[1], KEYS[2])
return {'ok', forget_oldest(KEYS[1], KEYS[2], tonumber(ARGV[2]))}
`,
);

/**
 * Notes what tenants keep in bytes. KEYS: shares, their sum. ARGV: deadline, then tenant and bytes
 * in turn. Answers `ok`, the sum, the tenant that has most and its bytes; both are left out where
 * nobody has any.
 */
export const NOTE_SHARES = defineScript(
  'note_shares',
  `
for i = 2, #ARGV, 2 do
  local before = redis.call('ZSCORE', KEYS[1], ARGV[i]) or 0
  redis.call('INCRBY', KEYS[2], string.format('%d', ARGV[i + 1] - before))
  if tonumber(ARGV[i + 1]) > 0 then redis.call('ZADD', KEYS[1], ARGV[i + 1], ARGV[i]) else redis.call('ZREM', KEYS[1], ARGV[i]) end
end
local loudest = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {'ok', tonumber(redis.call('GET', KEYS[2]) or 0), loudest[1], loudest[2]}
`,
);

/**
 * Gives it up, if it is the owner's: it is nobody's. It is forgotten unless it names an instance:
 * what it claimed may have landed, and who opens it next is to look, as its mirror may not show
 * that yet. ARGV: deadline, owner. Answers `ok`. May be repeated.
 */
export const GIVE_UP_REQUEST = defineScript(
  'give_up_request',
  `
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
`,
);
