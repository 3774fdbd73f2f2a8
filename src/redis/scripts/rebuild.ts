import { defineScript, RUN } from '../script.ts';

/**
 * Begins to make a tenant's usage anew, or joins who has begun. KEYS: usage, rebuild. ARGV: deadline, a fresh token, ms to wait.
 * Answers `known` where there is nothing to do; else `wait`, the ms until the records may be read, and the token to end it with.
 */
export const BEGIN_REBUILD = defineScript('begin_rebuild', `${RUN}
if redis.call('HGET', KEYS[1], ':run') == run then return {'known'} end
local began, token, of = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+)|([^|]*)|(.*)$')
if of ~= run then
  began, token = now, ARGV[2]
  redis.call('SET', KEYS[2], string.format('%d', now) .. '|' .. token .. '|' .. run, 'PX', 20000)
end
return {'wait', math.max(0, began + ARGV[3] - now), token}
`);

/**
 * Puts what the records say in the place of a tenant's usage, unless somebody else did, or what was begun was lost meanwhile. All of it is to
 * be settled: what was released after its record was read, which had no effect, counts no longer than until then. KEYS: usage, unsettled, rebuild. ARGV: deadline, token, then name and amount in turn. Answers `known` or `lost`.
 */
export const END_REBUILD = defineScript('end_rebuild', `${RUN}
if redis.call('HGET', KEYS[1], ':run') == run then return {'known'} end
local token, of = string.match(redis.call('GET', KEYS[3]) or '', '^%d+|([^|]*)|(.*)$')
if of ~= run or token ~= ARGV[2] then return {'lost'} end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
local total = 0
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. '|0|')
  redis.call('ZADD', KEYS[2], now, ARGV[i])
  total = total + ARGV[i + 1]
end
redis.call('HSET', KEYS[1], ':run', run, ':total', total, ':version', now)
return {'known'}
`);
