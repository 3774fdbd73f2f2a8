import { defineScript } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Removes a name from a tenant's usage. KEYS: usage, unsettled. ARGV: deadline, name. Answers `ok`.
 * May be repeated.
 */
export const RELEASE = defineScript(
  'release',
  `${USAGE_ENTRY}
local entry = entry_of(KEYS[1], ARGV[2])
if entry then drop(KEYS[1], KEYS[2], ARGV[2], entry.amount) end
return {'ok'}
`,
);
