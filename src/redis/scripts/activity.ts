import { defineScript, RUN } from '../script.ts';

/**
 * The marks of a bucket are one hash, so that they are lost together: `:since` is the moment since
 * which they are whole, begun anew where they are missing or the server is another run than `:run`,
 * which may have lost the last of them.
 */
const SINCE = `${RUN}
local function since_of(key)
  local of, since = unpack(redis.call('HMGET', key, ':run', ':since'))
  if of == run then return tonumber(since) end
  redis.call('HSET', key, ':run', run, ':since', now)
  return now
end
local function mark(key, id, age)
  local at = now - age
  if at > tonumber(redis.call('HGET', key, id) or 0) then redis.call('HSET', key, id, string.format('%d', at)) end
end
`;

/**
 * Notes activity. KEYS: marks. ARGV: deadline, then id and how many ms ago in turn. Answers `ok`.
 */
export const TOUCH = defineScript(
  'touch',
  `${SINCE}
since_of(KEYS[1])
for i = 2, #ARGV, 2 do mark(KEYS[1], ARGV[i], tonumber(ARGV[i + 1])) end
return {'ok'}
`,
);

/**
 * Notes that a replica carries something out in sandboxes, which counts as activity, or no more.
 * KEYS: marks, then a set for each sandbox. ARGV: deadline, replica, for how long it holds in ms or
 * 0, then the ids. Answers `ok`.
 */
export const WORK = defineScript(
  'work',
  `${SINCE}
since_of(KEYS[1])
local replica, ms = ARGV[2], tonumber(ARGV[3])
for i = 4, #ARGV do
  local key = KEYS[i - 2]
  mark(KEYS[1], ARGV[i], 0)
  if ms == 0 then
    redis.call('ZREM', key, replica)
  else
    redis.call('ZADD', key, now + ms, replica)
    redis.call('PEXPIRE', key, ms)
  end
end
return {'ok'}
`,
);

/** Begins the marks where there are none. KEYS: marks. ARGV: deadline. Answers `ok`. */
export const BEGIN_MARKS = defineScript(
  'begin_marks',
  `${SINCE}
since_of(KEYS[1])
return {'ok'}
`,
);

/**
 * Whether nothing happened for so long. KEYS: marks, the sandbox's set of replicas at work. ARGV:
 * deadline, id, idle timeout, claimed at, ms since a touch that was not noted yet or '', ms within
 * which work is told again. Answers `expired`, or `active` and the moment of the last activity: now
 * where a replica works there, or marks were lost and work may not be told again yet; else the
 * newest of claim, mark and `:since`.
 */
export const EXPIRE = defineScript(
  'expire',
  `${SINCE}
local since, id = since_of(KEYS[1]), ARGV[2]
if ARGV[5] ~= '' then mark(KEYS[1], id, tonumber(ARGV[5])) end
local now_ms = string.format('%d', now)
if redis.call('ZCOUNT', KEYS[2], now, '+inf') > 0 then return {'active', now_ms} end
local active = math.max(since, tonumber(ARGV[4]), tonumber(redis.call('HGET', KEYS[1], id) or 0))
if now - active >= tonumber(ARGV[3]) then
  if now - since < tonumber(ARGV[6]) then return {'active', now_ms} end
  return {'expired'}
end
return {'active', string.format('%d', active)}
`,
);

/**
 * Marks an end for a while; the first stands. KEYS: marks, end, replicas at work. ARGV: deadline,
 * id, end, ms. Answers `ok`.
 */
export const MARK_ENDED = defineScript(
  'mark_ended',
  `
redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('DEL', KEYS[3])
redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[4])
return {'ok'}
`,
);

/**
 * KEYS: marks, end. ARGV: deadline, ms that an end is marked. Answers `ended` and the end, `none`,
 * or `unknown` where an end of that time may have been lost.
 */
export const ENDED = defineScript(
  'ended',
  `${SINCE}
local found, since = redis.call('GET', KEYS[2]), since_of(KEYS[1])
if found then return {'ended', found} end
return { now - since < tonumber(ARGV[2]) and 'unknown' or 'none' }
`,
);
