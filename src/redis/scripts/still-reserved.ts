import { defineScript, RUN } from '../script.ts';
import { USAGE_ENTRY } from './usage-entry.ts';

/**
 * Whether a reservation counts. KEYS: usage. ARGV: deadline, holder, name. A holder without an
 * attempt stands for all of its replica. Answers `yes` or `no`. Changes nothing.
 */
export const STILL_RESERVED = defineScript(
  'still_reserved',
  `${RUN}${USAGE_ENTRY}
local holder, entry = ARGV[2], redis.call('HGET', KEYS[1], ':run') == run and entry_of(KEYS[1], ARGV[3])
for _, part in ipairs(entry and entry.open or {}) do
  if part.holder == holder or string.match(part.holder, '^[^/]*') == holder then return {'yes'} end
end
return {'no'}
`,
);
