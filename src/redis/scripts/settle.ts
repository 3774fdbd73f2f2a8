import { defineScript } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Names reserved before a moment and not settled, at most 100, the oldest first. KEYS: usage, unsettled. ARGV: deadline, age in ms.
 * Answers `ok`, then name and version in turn.
 */
export const UNSETTLED = defineScript('unsettled', `${USAGE_ENTRY}
local answer = {'ok'}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[2], 'LIMIT', 0, 100)) do
  local entry = entry_of(KEYS[1], name)
  if entry then
    answer[#answer + 1] = name
    answer[#answer + 1] = entry.version
  else
    redis.call('ZREM', KEYS[2], name)
  end
end
return answer
`);

/**
 * Settles names, each if it was not reserved again since its version. KEYS: usage, unsettled. ARGV: deadline, then name, version and
 * amount in turn. Answers `ok`. May be repeated. What counts has no holder any more: nobody can withdraw it.
 */
export const SETTLE = defineScript('settle', `${USAGE_ENTRY}
for i = 2, #ARGV, 3 do
  local name, entry = ARGV[i], entry_of(KEYS[1], ARGV[i])
  if entry and entry.version == ARGV[i + 1] then
    local amount = tonumber(ARGV[i + 2])
    if amount > 0 then
      redis.call('ZREM', KEYS[2], name)
      redis.call('HSET', KEYS[1], name, amount .. '|' .. entry.version .. '|')
      redis.call('HINCRBY', KEYS[1], ':total', amount - entry.amount)
    else
      drop(KEYS[1], KEYS[2], name, entry.amount)
    end
  end
end
return {'ok'}
`);
