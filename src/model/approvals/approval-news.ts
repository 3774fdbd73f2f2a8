import type { ApprovalRecord } from './approval.ts';

export interface ApprovalNews {
  /** Stays equal on every replica, and after a restart. */
  readonly id: string;
  readonly event: 'approval.requested' | 'approval.decided' | 'approval.consumed';
  /** In ms. */
  readonly at: number;
  readonly record: ApprovalRecord;
}

/** Returns all events that the record shows, in order. */
export const newsOf = (record: ApprovalRecord): readonly ApprovalNews[] => {
  const { id, createdAt, decidedAt, use } = record;
  return [
    { id: `${id}.requested`, event: 'approval.requested', at: createdAt, record },
    ...(decidedAt === undefined
      ? []
      : [{ id: `${id}.decided`, event: 'approval.decided', at: decidedAt, record } as const]),
    // a released grant can be used again
    ...(use === undefined
      ? []
      : [
          {
            id: `${id}.consumed.${use.at}`,
            event: 'approval.consumed',
            at: use.at,
            record,
          } as const,
        ]),
  ];
};
