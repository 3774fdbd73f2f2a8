import { RecentSet } from '../../lib/recent-set.ts';
import { hasPairs, type TextPairs } from '../../model/claim-terms.ts';
import type { Claim, End, InstanceRecord, SandboxStatus } from '../../model/sandbox.ts';
import type { PoolCounts } from '../../model/pools/pool.ts';
import { isKeyed, isOfManager, type RequestFingerprint } from '../../model/request-fingerprint.ts';
import { sameTenant, type Tenant } from '../../model/tenant.ts';

/** Where one instance stands in the indexes. */
export interface Placement {
  readonly id: string;
  readonly status: SandboxStatus;
  readonly poolUid: string;
  readonly poolName: string;
  readonly updateRevision: string;
  /** The claim's owner, else the pool's. */
  readonly owner: Tenant;
  readonly createdAt: number;
  readonly claimedAt: number | undefined;
  /** Since when it is ready to claim; undefined: it isn't. */
  readonly availableAt: number | undefined;
  /**
   * Since when this replica has seen it not ready while its node is well; undefined: it is ready,
   * or its node is in trouble.
   */
  readonly unreadyAt?: number;
  /**
   * The key of the request that claimed it, where that had one; absent once its claim was given
   * back: then the request has claimed nothing.
   */
  readonly mark?: string;
  /** A manager made that key: it is not remembered once the claim is over. */
  readonly isMarkOfManager?: boolean;
  /** Comes from its claim. */
  readonly metadata?: TextPairs;
  /** It was launched for one claim: until that comes its pool does not have it. */
  readonly isApart?: boolean;
}

/** Whether an instance is one of those that its pool has. */
export const isOfPool = ({ isApart, claimedAt }: Placement): boolean =>
  isApart !== true || claimedAt !== undefined;

export const samePlace = (a: Placement, b: Placement): boolean =>
  a.status === b.status &&
  a.availableAt === b.availableAt &&
  a.unreadyAt === b.unreadyAt &&
  a.claimedAt === b.claimedAt &&
  a.createdAt === b.createdAt &&
  a.poolUid === b.poolUid &&
  a.poolName === b.poolName &&
  a.mark === b.mark &&
  sameTenant(a.owner, b.owner) &&
  samePairs(a.metadata, b.metadata);

const samePairs = (a: TextPairs | undefined, b: TextPairs | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    Object.keys(a).length === Object.keys(b).length &&
    hasPairs(a, b));

/** Tells how a pool counts an instance; undefined once it has completed, and of what is not its. */
export const countedAs = (placement: Placement): keyof PoolCounts | undefined => {
  if (!isOfPool(placement)) return undefined;
  switch (placement.status) {
    case 'Starting':
      return 'starting';
    case 'Idle':
      return placement.availableAt === undefined ? 'unavailable' : 'idle';
    case 'Running':
      return 'running';
    case 'Stopping':
      return placement.claimedAt === undefined ? 'retiring' : 'stopping';
    case 'Failed':
      return 'failed';
    case 'Completed':
      return undefined;
  }
};

const keyOf = (mark: RequestFingerprint | undefined): string | undefined =>
  mark && isKeyed(mark) ? mark.key : undefined;

export const placementOf = (
  record: Pick<
    InstanceRecord,
    'id' | 'poolUid' | 'poolName' | 'poolOwner' | 'createdAt' | 'updateRevision' | 'claimBy'
  > & { readonly claim?: Claim; readonly end?: End },
  status: SandboxStatus,
  {
    availableAt,
    unreadyAt,
    end,
  }: Pick<Placement, 'availableAt' | 'unreadyAt'> & { readonly end?: End },
): Placement => ({
  id: record.id,
  status,
  poolUid: record.poolUid,
  poolName: record.poolName,
  updateRevision: record.updateRevision,
  owner: record.claim?.owner ?? record.poolOwner,
  createdAt: record.createdAt,
  claimedAt: record.claim?.claimedAt,
  mark: (end ?? record.end)?.reason === 'claim-failed' ? undefined : keyOf(record.claim?.mark),
  isMarkOfManager: record.claim?.mark && isOfManager(record.claim.mark) ? true : undefined,
  metadata: record.claim?.metadata,
  availableAt,
  unreadyAt,
  isApart: record.claimBy === undefined ? undefined : true,
});

type Marked = Pick<Placement, 'id' | 'mark' | 'isMarkOfManager'>;

/** Claims whose end is remembered. */
const MOST_ENDED = 10_000;

/** Finds claims by the request under an Idempotency-Key, or under a grant, that they are of. */
export class ClaimMarks {
  readonly #byMark = new Map<string, string>();
  readonly #ended = new RecentSet(MOST_ENDED);

  place(before: Marked | undefined, { id, mark }: Marked): void {
    if (mark !== undefined) this.#byMark.set(mark, id);
    else this.#forget(before);
  }

  end(placement: Marked): void {
    this.#forget(placement);
    const { mark, isMarkOfManager } = placement;
    if (mark !== undefined && !isMarkOfManager) this.#ended.add(mark);
  }

  /** Returns the id of what it claimed, as long as that lives and was not given back. */
  find(mark: string): string | undefined {
    return this.#byMark.get(mark);
  }

  /** Whether what it claimed was seen to end, as far as that is remembered. */
  hasEnded(mark: string): boolean {
    return this.#ended.has(mark);
  }

  #forget(placement: Marked | undefined): void {
    if (placement?.mark !== undefined && this.#byMark.get(placement.mark) === placement.id)
      this.#byMark.delete(placement.mark);
  }
}
