import { defineScript, RUN } from '../script.ts';

/**
 * Events are a stream, each under its number as `number-0`. `seen` is a sorted set of the keys
 * under which the last were told, by number. `state` is a hash: `last`, the last number given;
 * `:since`, up to which some are not there, begun anew where it is missing or the server is another
 * run than `:run`, which may have lost the last of them, or all.
 */
const SINCE = `${RUN}
local function since_of(key)
  local of, since, last = unpack(redis.call('HMGET', key, ':run', ':since', 'last'))
  if of == run then return since end
  since = string.format('%d', math.max(tonumber(last or 0), now * 1000))
  redis.call('HSET', key, ':run', run, ':since', since, 'last', since)
  return since
end
`;

/**
 * Adds events. KEYS: stream, state, seen. ARGV: deadline, most that are remembered, then key and
 * JSON in turn. Answers `ok` and the number of each. May be repeated.
 */
export const ADD_EVENTS = defineScript(
  'add_events',
  `${SINCE}
since_of(KEYS[2])
local most, answer = tonumber(ARGV[2]), {'ok'}
local last = tonumber(redis.call('HGET', KEYS[2], 'last'))
for i = 3, #ARGV, 2 do
  local number = redis.call('ZSCORE', KEYS[3], ARGV[i])
  if not number then
    last = math.max(last + 1, now * 1000)
    number = string.format('%d', last)
    redis.call('ZADD', KEYS[3], number, ARGV[i])
    redis.call('XADD', KEYS[1], number .. '-0', 'event', ARGV[i + 1])
  end
  answer[#answer + 1] = number
end
redis.call('HSET', KEYS[2], 'last', string.format('%d', last))
local over = redis.call('XLEN', KEYS[1]) - most
if over > 0 then
  local gone = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', over)
  redis.call('HSET', KEYS[2], ':since', string.match(gone[#gone][1], '^%d+'))
  redis.call('XTRIM', KEYS[1], 'MAXLEN', most)
end
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1 - 2 * most)
return answer
`,
);

/**
 * Reads events after a number. KEYS: stream, state. ARGV: deadline, number, most at once. Answers
 * `ok`, the number up to which some are not known, then number and JSON in turn.
 */
export const READ_EVENTS = defineScript(
  'read_events',
  `${SINCE}
local answer = {'ok', since_of(KEYS[2])}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. ARGV[2] .. '-0', '+', 'COUNT', ARGV[3])) do
  answer[#answer + 1] = string.match(entry[1], '^%d+')
  answer[#answer + 1] = entry[2][2]
end
return answer
`,
);
