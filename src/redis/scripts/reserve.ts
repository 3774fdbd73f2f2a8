import { defineScript, RUN } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Adds a name to a tenant's usage unless that passes the limit; before it withdraws another name, where one is given.
 * KEYS: usage, unsettled[, request]. ARGV: deadline, holder, name, amount, limit, name to withdraw or '', owner of the request or ''.
 * Answers `ok`, `full`; `unknown`, having done nothing, where the usage is not known; `taken`, having withdrawn, where the request has
 * another owner.
 */
export const RESERVE = defineScript('reserve', `${RUN}${USAGE_ENTRY}
local usage, times, request = KEYS[1], KEYS[2], KEYS[3]
local holder, name, amount, limit, from, owner = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]
if redis.call('HGET', usage, ':run') ~= run then return {'unknown'} end
if from ~= '' then withdraw(usage, times, from, holder) end
if owner ~= '' and redis.call('HGET', request, 'owner') ~= owner then return {'taken'} end
local entry = entry_of(usage, name) or { amount = 0, holders = '' }
local grown = amount - entry.amount
if tonumber(redis.call('HGET', usage, ':total')) + grown > limit then return {'full'} end
local holders = without(entry.holders, holder)
holders = holders == '' and holder or holders .. ',' .. holder
redis.call('HSET', usage, name, amount .. '|' .. redis.call('HINCRBY', usage, ':version', 1) .. '|' .. holders)
redis.call('HINCRBY', usage, ':total', grown)
redis.call('ZADD', times, now, name)
if owner ~= '' then redis.call('HSET', request, 'instance', name) end
return {'ok'}
`);
