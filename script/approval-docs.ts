import { readFileSync } from 'node:fs';
import { HELD_OPERATIONS } from '../src/model/approvals/held-operations.ts';

const PAGE = new URL('../docs/approvals.md', import.meta.url);
const HEADING = '## Operations that rules can name\n';

/** Returns docs/approvals.md with the table of all operations, which is its end. */
export const approvalPage = (): string => {
  const [written = ''] = readFileSync(PAGE, 'utf8').split(HEADING, 1);
  const rows = Object.entries(HELD_OPERATIONS).map(([id, request]) => `| \`${id}\` | ${request} |`);
  return [
    `${written}${HEADING}`,
    '`operation=` takes these names; several stand with `|` between. [api.md](api.md) says what each does.\n',
    '| operationId | request |',
    '| --- | --- |',
    ...rows,
    '',
  ].join('\n');
};
