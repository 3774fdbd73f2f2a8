import { defineScript } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Puts what was written in the place of one attempt's reservation of a name, unless a later
 * revision was confirmed. KEYS: usage, unsettled. ARGV: deadline, holder, name, amount, revision.
 * Answers `ok`. May be repeated. A name that is not there stays so.
 */
export const CONFIRM = defineScript(
  'confirm',
  `${USAGE_ENTRY}
local name, revision = ARGV[3], ARGV[5]
local entry = entry_of(KEYS[1], name)
if not entry then return {'ok'} end
entry.open = without(entry.open, ARGV[2])
if #revision > #entry.revision or #revision == #entry.revision and revision > entry.revision then
  entry.settled, entry.revision = tonumber(ARGV[4]), revision
end
entry.version = redis.call('HINCRBY', KEYS[1], ':version', 1)
put(KEYS[1], KEYS[2], name, entry)
return {'ok'}
`,
);
