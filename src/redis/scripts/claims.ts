import { defineScript, RUN } from '../script.ts';
import { FORGETTING, OPENING } from './requests.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Those who wait for a pool are a sorted set of `id|replica`, by the moment at which they came, in
 * microseconds, no two alike. Beside it is a hash: by replica when it last said that it lives, and
 * `:front`, `:since` and `:last`: who stood before others that saw idle ones, since when, and when
 * last. Both are forgotten when nobody waits any more.
 */
const ORDER = `
local DEAD_MS, KEPT_MS, AGAIN_MS = 3000, 60000, 1000
local function remember(order, seen)
  redis.call('PEXPIRE', order, KEPT_MS)
  redis.call('PEXPIRE', seen, KEPT_MS)
end
local function number(score) return string.format('%d', score) end
local function living(order, seen, before)
  local alive, known = {}, {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', order, '-inf', before)) do
    local replica = string.match(member, '^[^|]*|(.*)$')
    if known[replica] == nil then known[replica] = tonumber(redis.call('HGET', seen, replica) or 0) > now - DEAD_MS end
    if known[replica] then alive[#alive + 1] = member else redis.call('ZREM', order, member) end
  end
  return alive
end
local function lets_lie(seen, front)
  local of, since, last = unpack(redis.call('HMGET', seen, ':front', ':since', ':last'))
  if of ~= front or now - last > AGAIN_MS then since = now end
  redis.call('HSET', seen, ':front', front, ':since', since, ':last', now)
  return now - since >= DEAD_MS
end
`;

/**
 * Takes the last place. KEYS: order, seen. ARGV: deadline, id, replica, most that wait. Answers
 * `ok` and the moment, or `full`.
 */
export const JOIN_WAITING = defineScript(
  'join_waiting',
  `${ORDER}
local order, seen, replica = KEYS[1], KEYS[2], ARGV[3]
redis.call('HSET', seen, replica, now)
if redis.call('ZCARD', order) >= tonumber(ARGV[4]) and #living(order, seen, '+inf') >= tonumber(ARGV[4]) then return {'full'} end
local last = redis.call('ZREVRANGE', order, 0, 0, 'WITHSCORES')[2] or 0
local at = number(math.max(last + 1, clock[1] * 1000000 + clock[2]))
redis.call('ZADD', order, at, ARGV[2] .. '|' .. replica)
remember(order, seen)
return {'ok', at}
`,
);

/** Gives a place up. KEYS: order. ARGV: deadline, member. Answers `ok`. May be repeated. */
export const LEAVE_WAITING = defineScript(
  'leave_waiting',
  `
redis.call('ZREM', KEYS[1], ARGV[2])
return {'ok'}
`,
);

/** KEYS: order, seen. ARGV: deadline. Answers `ok` and how many wait. */
export const COUNT_WAITING = defineScript(
  'count_waiting',
  `${ORDER}
return {'ok', #living(KEYS[1], KEYS[2], '+inf')}
`,
);

/**
 * A replica lives, and has these waiting, and no others. KEYS: order, seen. ARGV: deadline,
 * replica, then member and moment in turn; '' as a moment: it is about to come. Answers `ok`. May
 * be repeated.
 */
export const BEAT_WAITING = defineScript(
  'beat_waiting',
  `${ORDER}
local order, seen, replica = KEYS[1], KEYS[2], ARGV[2]
local mine = {}
for i = 3, #ARGV, 2 do
  mine[ARGV[i]] = true
  if ARGV[i + 1] ~= '' then redis.call('ZADD', order, 'NX', ARGV[i + 1], ARGV[i]) end
end
for _, member in ipairs(redis.call('ZRANGE', order, 0, -1)) do
  if not mine[member] and string.match(member, '^[^|]*|(.*)$') == replica then redis.call('ZREM', order, member) end
end
redis.call('HSET', seen, replica, now)
remember(order, seen)
return {'ok'}
`,
);

/**
 * One that came before may have left the order for it, its write still under way; a write that
 * takes longer than TRIED_MS is not waited for.
 */
const TRIED = `
local TRIED_MS = 1000
local function tried_by_another(usage, times, name, replica)
  local entry = entry_of(usage, name)
  for _, part in ipairs(entry and entry.open or {}) do
    if string.match(part.holder, '^[^/]*') ~= replica then return now - redis.call('ZSCORE', times, name) < TRIED_MS end
  end
  return false
end
`;

/**
 * All that a claim needs, of the pool's owner. KEYS: usage, unsettled, order, seen[, request[,
 * requests, answers]]. ARGV: deadline, holder (`replica/attempt`), instance, limit, instance whose
 * reservation is given up or '', owner of the request or '', idle ones, member or '', its moment or
 * '', `looked` or ''[, those of OPEN_REQUEST]. Answers `ok`, `full`, `later`; `opened` and what
 * OPEN_REQUEST would, where the request is not new, or names an instance; `unknown`, having opened
 * at most, where the usage is not known; `look`, having opened and withdrawn, where it has not been
 * known for long and the request was not looked for; `taken`, having withdrawn, where the request
 * has another owner.
 */
export const ADMIT_CLAIM = defineScript(
  'admit_claim',
  `${RUN}${USAGE_ENTRY}${FORGETTING}${OPENING}${ORDER}${TRIED}
local usage, times, order, seen, request = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local holder, name, limit, from, owner, idle, member, at = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
if ARGV[11] then
  local kind, more = open_request(request, KEYS[6], KEYS[7], unpack(ARGV, 11))
  if kind ~= 'new' or more ~= '' then return {'opened', kind, more} end
end
if redis.call('HGET', usage, ':run') ~= run then return {'unknown'} end
if from ~= '' then withdraw(usage, times, from, holder) end
if owner ~= '' and redis.call('HGET', request, 'owner') ~= owner then return {'taken'} end
if owner ~= '' and ARGV[10] == '' and not known_for_long(usage) then return {'look'} end
local before = living(order, seen, member == '' and '+inf' or '(' .. at)
local count = #before
if count >= idle and lets_lie(seen, before[1]) then
  redis.call('ZREM', order, before[1])
  count = count - 1
end
if count >= idle or member ~= '' and tried_by_another(usage, times, name, string.match(holder, '^[^/]*')) then
  if member ~= '' then redis.call('ZADD', order, at, member) end
  remember(order, seen)
  return {'later'}
end
if not reserve(usage, times, { name = name, amount = 1, limit = limit, holder = holder }) then return {'full'} end
if member ~= '' then redis.call('ZREM', order, member) end
if owner ~= '' then redis.call('HSET', request, 'instance', name) end
return {'ok'}
`,
);
