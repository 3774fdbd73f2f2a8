import { defineScript, RUN } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/** Whether a replica's reservation counts. KEYS: usage. ARGV: deadline, holder, name. Answers `yes` or `no`. Changes nothing. */
export const STILL_RESERVED = defineScript('still_reserved', `${RUN}${USAGE_ENTRY}
local entry = redis.call('HGET', KEYS[1], ':run') == run and entry_of(KEYS[1], ARGV[3])
return { entry and without(entry.holders, ARGV[2]) ~= entry.holders and 'yes' or 'no' }
`);
