import { defineScript, RUN } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Reserves an amount of a tenant's usage for a name, unless the usage grows beyond the limit by
 * that. KEYS: usage, unsettled. ARGV: deadline, holder, name, amount, limit. Answers `ok`, `full`;
 * `unknown`, having done nothing, where the usage is not known.
 */
export const RESERVE = defineScript(
  'reserve',
  `${RUN}${USAGE_ENTRY}
if redis.call('HGET', KEYS[1], ':run') ~= run then return {'unknown'} end
local reserved = reserve(KEYS[1], KEYS[2], { holder = ARGV[2], name = ARGV[3], amount = tonumber(ARGV[4]), limit = tonumber(ARGV[5]) })
return { reserved and 'ok' or 'full' }
`,
);
