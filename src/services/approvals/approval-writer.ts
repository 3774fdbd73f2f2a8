import type { ApprovalMirror } from '../../actors/approval/approval-mirror.ts';
import { expired, isExpired, settled } from '../../model/approvals/approval-changes.ts';

type Amending = Pick<ApprovalMirror, 'amend'>;

/** Ends an approval whose time is over. */
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
 * Notes that the effect of a grant is there, or that nobody tries to bring it about again.
 * `answeredAt`: of its answer, where there is one.
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
