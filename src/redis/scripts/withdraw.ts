import { defineScript } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Takes one attempt's reservation of a name back. KEYS: usage, unsettled. ARGV: deadline, holder,
 * name. Answers `ok`. May be repeated.
 */
export const WITHDRAW = defineScript(
  'withdraw',
  `${USAGE_ENTRY}
withdraw(KEYS[1], KEYS[2], ARGV[3], ARGV[2])
return {'ok'}
`,
);
