import type { Approval } from '../client/wire.ts';
import { printable } from '../common/printable.ts';
import { type Column, shortTime, tableOf } from './rows.ts';
import { fields } from './table.ts';

export const approvalTable = (approvals: readonly Approval[], wide: boolean): string =>
  tableOf(APPROVAL, approvals, wide);

export const approvalFields = (approval: Approval): string =>
  fields([
    ['approval', approval.id],
    ['status', approval.status],
    ['asked by', `${approval.principal.team}/${approval.principal.user}`],
    ['request', `${approval.method} ${approval.path}`],
    ['summary', printable(approval.summary)],
    ['created', shortTime(approval.createdAt)],
    ['expires', shortTime(approval.expiresAt)],
    ['decided by', printable(approval.decidedBy ?? '-')],
    ['reason', printable(approval.reason ?? '-')],
  ]);

const APPROVAL: readonly Column<Approval>[] = [
  { heading: 'APPROVAL', of: ({ id }) => id },
  { heading: 'STATUS', of: ({ status }) => status },
  { heading: 'SINCE', of: ({ createdAt }) => shortTime(createdAt) },
  { heading: 'USER', of: ({ principal: { team, user } }) => `${team}/${user}` },
  { heading: 'REQUEST', of: ({ method, path }) => `${method} ${path}` },
  { heading: 'EXPIRES', of: ({ expiresAt }) => shortTime(expiresAt), wide: true },
  { heading: 'DECIDED BY', of: ({ decidedBy }) => decidedBy, wide: true },
];
