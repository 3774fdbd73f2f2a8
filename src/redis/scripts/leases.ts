import { defineScript } from '../script.ts';

/**
 * This replica lives. KEYS: replicas, holders. ARGV: deadline, replica, ms without a heartbeat after which one is dead, `join` or `leave`.
 * Answers `ok`, the count of live replicas, those, then shard and holder in turn. The long dead are forgotten.
 */
export const HEARTBEAT = defineScript('heartbeat', `
if ARGV[4] == 'join' then redis.call('ZADD', KEYS[1], now, ARGV[2]) else redis.call('ZREM', KEYS[1], ARGV[2]) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 60000)
local live = redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[3], '+inf')
local answer = {'ok', #live}
for _, replica in ipairs(live) do answer[#answer + 1] = replica end
for _, part in ipairs(redis.call('HGETALL', KEYS[2])) do answer[#answer + 1] = part end
return answer
`);

/** A lock was won: gives its epoch, which is higher than every one before, also where those were lost. KEYS: epochs, holders. ARGV: deadline, shard, replica. Answers `ok` and the epoch. */
export const NEXT_EPOCH = defineScript('next_epoch', `
local epoch = math.max(tonumber(redis.call('HGET', KEYS[1], ARGV[2]) or 0) + 1, now)
redis.call('HSET', KEYS[1], ARGV[2], string.format('%d', epoch))
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
return {'ok', string.format('%d', epoch)}
`);

/** A lock was given up: it has no holder any more. KEYS: holders. ARGV: deadline, shard, replica. Answers `ok`. */
export const NO_HOLDER = defineScript('no_holder', `
if redis.call('HGET', KEYS[1], ARGV[2]) == ARGV[3] then redis.call('HDEL', KEYS[1], ARGV[2]) end
return {'ok'}
`);
