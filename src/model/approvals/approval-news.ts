import type { ApprovalRecord } from './approval.ts';

/** Tells one thing that became of an approval. */
export interface ApprovalNews {
  /** Names it: the same on every replica, and after a restart. */
  readonly id: string;
  readonly event: 'approval.requested' | 'approval.decided' | 'approval.consumed';
  /** When it came about, in ms. */
  readonly at: number;
  readonly record: ApprovalRecord;
}

/** Returns all that became of an approval as far as its record tells, in order. */
export const newsOf = (record: ApprovalRecord): readonly ApprovalNews[] => {
  const { id, createdAt, decidedAt, use } = record;
  return [
    { id: `${id}.requested`, event: 'approval.requested', at: createdAt, record },
    ...(decidedAt === undefined
      ? []
      : [{ id: `${id}.decided`, event: 'approval.decided', at: decidedAt, record } as const]),
    // a grant that was given back can be used a second time
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
