import type { Clock } from '../../contracts/clock.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import type { LifecycleEvent } from '../../model/event.ts';
import { shardOf } from '../../model/shards.ts';
import type { EventSink } from '../runtime/event-feed.ts';
import type { ApprovalMirror } from './approval-mirror.ts';

export interface ApprovalEventsDeps {
  readonly approvals: ApprovalMirror;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly leads: (shard: number) => boolean;
}

/** An older request was published before this replica started. */
const NEWS_MS = 60_000;

export const tellOfApprovals = ({ approvals, events, clock, leads }: ApprovalEventsDeps): void => {
  approvals.follow(({ kind, record }, before) => {
    const event = kind === 'put' ? eventOf(record, before, clock.now()) : undefined;
    if (!event) return;
    const { namespace, team, user } = record.principal;
    const shard = shardOf(record.id);
    events.note(
      { ...event, at: clock.now(), owner: { namespace, team, user }, poolName: '' },
      { key: `approval/${record.id}/${record.status}`, shard, ours: leads(shard), kept: false },
    );
  });
};

const eventOf = (
  { id, status, summary, createdAt, decidedBy = '' }: ApprovalRecord,
  before: ApprovalRecord | undefined,
  now: number,
): LifecycleEvent | undefined => {
  if (status === before?.status) return undefined;
  if (status === 'pending' && !before && createdAt > now - NEWS_MS)
    return { reason: 'approval.requested', approvalId: id, summary };
  if (!before) return undefined;
  if (before.status === 'pending' && (status === 'approved' || status === 'denied'))
    return { reason: 'approval.decided', approvalId: id, decision: status, by: decidedBy };
  return status === 'consumed' ? { reason: 'approval.consumed', approvalId: id } : undefined;
};
