import type { ApprovalMirror } from '../../actors/approval/approval-mirror.ts';
import { expired, isExpired, settled } from '../../model/approvals/approval-changes.ts';

type Amending = Pick<ApprovalMirror, 'amend'>;

export const expireApproval =
  (mirror: Amending, now: () => number) =>
  async (id: string, permitted: () => boolean): Promise<void> => {
    await mirror.amend(
      id,
      (record) => (isExpired(record, now()) ? expired(record) : undefined),
      permitted,
    );
  };

/**
 * Call it once the effect exists, or nobody will attempt it again. `answeredAt` is the time of its
 * answer.
 */
export const settleApproval =
  (mirror: Amending, answeredAt?: number) =>
  async (id: string, permitted?: () => boolean): Promise<void> => {
    await mirror.amend(
      id,
      (record) => (record.use?.settled === false ? settled(record, answeredAt) : undefined),
      permitted,
    );
  };
