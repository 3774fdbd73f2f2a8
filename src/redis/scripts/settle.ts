import { defineScript, RUN } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Names reserved before a moment and not settled, at most 100, the oldest first. KEYS: usage,
 * unsettled. ARGV: deadline, age in ms. Answers `ok`, then name and version in turn; `unknown`
 * where the usage is not known.
 */
export const UNSETTLED = defineScript(
  'unsettled',
  `${RUN}${USAGE_ENTRY}
if redis.call('HGET', KEYS[1], ':run') ~= run then return {'unknown'} end
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
`,
);

/**
 * Settles names, each if it was neither reserved nor confirmed again since its version; the version
 * '' is that of a name that is not there. KEYS: usage, unsettled. ARGV: deadline, then name,
 * version, amount and the revision of its record in turn. Answers `ok`. May be repeated. What
 * counts is nobody's reservation any more: nobody can withdraw it.
 */
export const SETTLE = defineScript(
  'settle',
  `${USAGE_ENTRY}
for i = 2, #ARGV, 4 do
  local name, amount, entry = ARGV[i], tonumber(ARGV[i + 2]), entry_of(KEYS[1], ARGV[i])
  if (entry and entry.version or '') == ARGV[i + 1] then
    entry = entry or { amount = 0 }
    entry.open, entry.settled, entry.revision = {}, amount, amount > 0 and ARGV[i + 3] or ''
    entry.version = redis.call('HINCRBY', KEYS[1], ':version', 1)
    put(KEYS[1], KEYS[2], name, entry)
  end
end
return {'ok'}
`,
);
