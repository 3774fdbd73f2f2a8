import { defineScript } from '../script.ts';

/**
 * History lies under one prefix, KEYS[1], with one hash tag. `:bodies` has by id
 * `group|claimed|ended|JSON`; `:groups` numbers each owner with a pool, `namespace/team/user/pool`,
 * and `:names` has them by number. There are two sorted sets for all, for each namespace, each
 * owner and each group: `:claimed` of `id|group|ended` by the moment of the claim, from which pages
 * are read, and `:ended` of ids by the moment of the end, which counts them. `:charges` has by id
 * what counts in bytes for its owner, `:shares` orders owners by the sum of theirs, and `:bytes`
 * has the sum of all. What a version without these recorded counts nothing.
 */
const INDEXES = `
local base = KEYS[1]
local function levels_of(name, group)
  local namespace, team, user = string.match(name, '^([^/]*)/([^/]*)/([^/]*)/')
  return { base .. ':all', base .. ':namespace:' .. namespace, base .. ':owner:' .. namespace .. '/' .. team .. '/' .. user, base .. ':group:' .. group }
end
local function charge(name, bytes)
  local owner = string.match(name, '^[^/]*/[^/]*/[^/]*')
  if tonumber(redis.call('ZINCRBY', base .. ':shares', bytes, owner)) <= 0 then redis.call('ZREM', base .. ':shares', owner) end
  if redis.call('INCRBY', base .. ':bytes', string.format('%d', bytes)) <= 0 then redis.call('DEL', base .. ':bytes') end
end
`;

/** What an entry and an event count beside their text: about what the indexes take. */
const OVERHEAD = `
local RECORD_BYTES, EVENT_BYTES = 1300, 100
`;

/**
 * Records a finished sandbox; the first record of an id stands. ARGV: deadline, id, JSON, group's
 * name, claimed at, ended at, ms that it is kept after that. Answers `ok`.
 */
export const RECORD = defineScript(
  'record',
  `${INDEXES}${OVERHEAD}
local id, body, name, claimed, ended = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('HEXISTS', base .. ':bodies', id) == 1 then return {'ok'} end
local group = redis.call('HGET', base .. ':groups', name)
if not group then
  group = tostring(redis.call('INCR', base .. ':last-group'))
  redis.call('HSET', base .. ':groups', name, group)
  redis.call('HSET', base .. ':names', group, name)
end
redis.call('HSET', base .. ':bodies', id, group .. '|' .. claimed .. '|' .. ended .. '|' .. body)
local bytes = #body + RECORD_BYTES
for _, event in ipairs(redis.call('ZRANGE', base .. ':events:' .. id, 0, -1)) do bytes = bytes + #event + EVENT_BYTES end
redis.call('HSET', base .. ':charges', id, bytes)
charge(name, bytes)
for _, level in ipairs(levels_of(name, group)) do
  redis.call('ZADD', level .. ':claimed', claimed, id .. '|' .. group .. '|' .. ended)
  redis.call('ZADD', level .. ':ended', ended, id)
end
redis.call('PEXPIREAT', base .. ':events:' .. id, string.format('%d', ended + ARGV[7]))
return {'ok'}
`,
);

/** ARGV: deadline, id. Answers `ok` and its entry of `:bodies`, or `none`. */
export const FIND = defineScript(
  'find',
  `
local entry = redis.call('HGET', KEYS[1] .. ':bodies', ARGV[2])
if entry then return {'ok', entry} end
return {'none'}
`,
);

/**
 * Counts how many ended at or after a moment. ARGV: deadline, the moment, the level, or '' and the
 * name of one group. Answers `ok`, the total, how many were claimed at or after the moment, and the
 * level; `none` where there is no such group.
 */
export const TOTAL = defineScript(
  'total',
  `
local base, since, level = KEYS[1], ARGV[2], ARGV[3]
if level == '' then
  local group = redis.call('HGET', base .. ':groups', ARGV[4])
  if not group then return {'none'} end
  level = ':group:' .. group
end
return {'ok', redis.call('ZCOUNT', base .. level .. ':ended', since, '+inf'), redis.call('ZCOUNT', base .. level .. ':claimed', since, '+inf'), level}
`,
);

/**
 * One step of a look through all groups, some of which may be met twice. ARGV: deadline, cursor,
 * groups to look at, the moment, the pattern that their names match. Answers `ok`, the next cursor,
 * 0 after the last, then of each that matches number, name, and how many ended at or after the
 * moment.
 */
export const MATCH_GROUPS = defineScript(
  'match_groups',
  `
local base = KEYS[1]
local found = redis.call('HSCAN', base .. ':groups', ARGV[2], 'COUNT', ARGV[3])
local answer = {'ok', found[1]}
for i = 1, #found[2], 2 do
  local name, group = found[2][i], found[2][i + 1]
  if string.match(name, ARGV[5]) then
    answer[#answer + 1] = group
    answer[#answer + 1] = name
    answer[#answer + 1] = redis.call('ZCOUNT', base .. ':group:' .. group .. ':ended', ARGV[4], '+inf')
  end
end
return answer
`,
);

/**
 * Counts what there is of each namespace. ARGV: deadline, then namespaces. Answers `ok`, then the
 * numbers.
 */
export const COUNT_BY_NAMESPACE = defineScript(
  'count_by_namespace',
  `
local answer = {'ok'}
for i = 2, #ARGV do answer[i] = redis.call('ZCARD', KEYS[1] .. ':namespace:' .. ARGV[i] .. ':ended') end
return answer
`,
);

/**
 * One step of a walk down a level, newest claim first. ARGV: deadline, level, the last member seen
 * or '' (then the rank to begin at), the moment at or after which they ended, most entries, how
 * many matching ones to leave out, most to give, then the groups, all where there are none. Answers
 * `ok`, entries seen, how many matched, the last member, then entries of \`:bodies\`.
 */
export const WALK = defineScript(
  'walk',
  `
local base, key, since = KEYS[1], KEYS[1] .. ARGV[2] .. ':claimed', tonumber(ARGV[5])
local most, skip, wanted = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local from = tonumber(ARGV[4])
if ARGV[3] ~= '' then
  local rank = redis.call('ZREVRANK', key, ARGV[3])
  if not rank then return {'lost'} end
  from = rank + 1
end
local groups = nil
for i = 9, #ARGV do groups = groups or {}; groups[ARGV[i]] = true end
local seen, matched, last, ids = 0, 0, '', {}
for _, member in ipairs(redis.call('ZREVRANGE', key, from, from + most - 1)) do
  seen, last = seen + 1, member
  local id, group, ended = string.match(member, '^(.*)|(%d+)|(%d+)$')
  if tonumber(ended) >= since and (not groups or groups[group]) then
    matched = matched + 1
    if matched > skip and #ids < wanted then ids[#ids + 1] = id end
    if #ids == wanted then break end
  end
end
local answer = {'ok', seen, matched, last}
for _, id in ipairs(ids) do
  local entry = redis.call('HGET', base .. ':bodies', id)
  if entry then answer[#answer + 1] = entry end
end
return answer
`,
);

const FORGETTING = `${INDEXES}
local function forget(ids)
  for _, id in ipairs(ids) do
    local group, claimed, ended = string.match(redis.call('HGET', base .. ':bodies', id) or '', '^(%d+)|(%d+)|(%d+)|')
    local name = group and redis.call('HGET', base .. ':names', group)
    local bytes = redis.call('HGET', base .. ':charges', id)
    if name and bytes then charge(name, -bytes) end
    if name then
      local levels = levels_of(name, group)
      for _, level in ipairs(levels) do
        redis.call('ZREM', level .. ':claimed', id .. '|' .. group .. '|' .. ended)
        redis.call('ZREM', level .. ':ended', id)
      end
      if redis.call('EXISTS', levels[4] .. ':ended') == 0 then
        redis.call('HDEL', base .. ':groups', name)
        redis.call('HDEL', base .. ':names', group)
      end
    end
    redis.call('ZREM', base .. ':all:ended', id)
    redis.call('HDEL', base .. ':bodies', id)
    redis.call('HDEL', base .. ':charges', id)
    redis.call('DEL', base .. ':events:' .. id)
  end
  return #ids
end
`;

/**
 * Forgets those that ended before a moment, the oldest first. ARGV: deadline, the moment, most at
 * once. Answers `ok` and how many.
 */
export const FORGET = defineScript(
  'forget',
  `${FORGETTING}
return {'ok', forget(redis.call('ZRANGEBYSCORE', base .. ':all:ended', '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3]))}
`,
);

/**
 * Forgets some of the owner that has most, those that ended first, where that owner or all together
 * have more bytes than they may. ARGV: deadline, bytes of an owner, of all, most at once. Answers
 * `ok` and how many.
 */
export const TRIM = defineScript(
  'trim',
  `${FORGETTING}
local loudest = redis.call('ZREVRANGE', base .. ':shares', 0, 0, 'WITHSCORES')
local all = tonumber(redis.call('GET', base .. ':bytes') or 0)
if not loudest[1] or tonumber(loudest[2]) <= tonumber(ARGV[2]) and all <= tonumber(ARGV[3]) then return {'ok', 0} end
return {'ok', forget(redis.call('ZRANGE', base .. ':owner:' .. loudest[1] .. ':ended', 0, ARGV[4] - 1))}
`,
);

/**
 * Forgets some of the owner that has most, those that ended first, or of all where most were
 * recorded by a version that did not count, where Redis uses more than a share of its `maxmemory`;
 * looks at that in the same step, so that any number of replicas may ask. ARGV: deadline, the
 * share, most at once. Answers `ok`, how many, and the share in use as text, 0 without a bound.
 */
export const MAKE_ROOM = defineScript(
  'make_room',
  `${FORGETTING}
local info = redis.call('INFO', 'memory')
local used, most = tonumber(string.match(info, 'used_memory:(%d+)')), tonumber(string.match(info, 'maxmemory:(%d+)'))
if not most or most == 0 then return {'ok', 0, '0'} end
local share = used / most
if share <= tonumber(ARGV[2]) then return {'ok', 0, tostring(share)} end
local of, loudest = ':all', redis.call('ZREVRANGE', base .. ':shares', 0, 0)[1]
if loudest and redis.call('HLEN', base .. ':charges') * 2 >= redis.call('HLEN', base .. ':bodies') then of = ':owner:' .. loudest end
return {'ok', forget(redis.call('ZRANGE', base .. of .. ':ended', 0, ARGV[3] - 1)), tostring(share)}
`,
);

/**
 * Records events, of each sandbox the newest so many; one whose number is known counts as done.
 * ARGV: deadline, most of a sandbox, ms that they are kept while it is not finished, ms after its
 * end, then sandbox, number and JSON in turn. Answers `ok`.
 */
export const RECORD_EVENTS = defineScript(
  'record_events',
  `${INDEXES}${OVERHEAD}
for i = 5, #ARGV, 3 do
  local id, number, key = ARGV[i], ARGV[i + 1], KEYS[1] .. ':events:' .. ARGV[i]
  if redis.call('ZCOUNT', key, number, number) == 0 then
    redis.call('ZADD', key, number, number .. '|' .. ARGV[i + 2])
    redis.call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[2])
    local group, ended = string.match(redis.call('HGET', base .. ':bodies', id) or '', '^(%d+)|%d+|(%d+)|')
    if ended and redis.call('HEXISTS', base .. ':charges', id) == 1 then
      local bytes = #number + #ARGV[i + 2] + EVENT_BYTES
      redis.call('HINCRBY', base .. ':charges', id, bytes)
      charge(redis.call('HGET', base .. ':names', group), bytes)
    end
    if ended then redis.call('PEXPIREAT', key, string.format('%d', ended + ARGV[4])) else redis.call('PEXPIRE', key, ARGV[3]) end
  end
end
return {'ok'}
`,
);

/**
 * ARGV: deadline, sandbox. Answers `ok`, then `number|JSON` of each event, the smallest number
 * first.
 */
export const EVENTS_OF = defineScript(
  'events_of',
  `
local answer = {'ok'}
for _, event in ipairs(redis.call('ZRANGE', KEYS[1] .. ':events:' .. ARGV[2], 0, -1)) do answer[#answer + 1] = event end
return answer
`,
);

/**
 * Records a decision of an autoscaling group under its number, of each group the newest so many.
 * ARGV: deadline, group, number, JSON, most, ms that they are kept after the last. Answers `ok`.
 */
export const RECORD_DECISION = defineScript(
  'record_decision',
  `
local key = KEYS[1] .. ':decisions:' .. ARGV[2]
redis.call('ZREMRANGEBYSCORE', key, ARGV[3], ARGV[3])
redis.call('ZADD', key, ARGV[3], ARGV[4])
redis.call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[5])
redis.call('PEXPIRE', key, ARGV[6])
return {'ok'}
`,
);

/** ARGV: deadline, group. Answers `ok`, then the JSON of each decision, the newest first. */
export const DECISIONS_OF = defineScript(
  'decisions_of',
  `
local answer = {'ok'}
for _, decision in ipairs(redis.call('ZREVRANGE', KEYS[1] .. ':decisions:' .. ARGV[2], 0, -1)) do answer[#answer + 1] = decision end
return answer
`,
);
