import type { Supervisor } from '../sandbox/supervisor.ts';
import { type Clock, pause } from '../../contracts/clock.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import {
  idempotencyInFlight,
  idempotencyKeyReused,
  Refusal,
  unavailable,
} from '../../model/refusals.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import { sameTenant, type Tenant } from '../../model/tenant.ts';
import { viewOf } from '../sandbox/sandbox-snapshot.ts';
import type { PendingRequests } from './pending-requests.ts';
import type { SandboxView } from '../views.ts';

export interface FindClaimDeps {
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly pendingRequests: PendingRequests;
}

const SETTLE_MS = 60_000;
const FENCE_AGAIN_MS = 1_000;

/**
 * Finds the live sandbox by the fingerprint on its record. When this resolves, the claim has landed
 * or never will. Refuses with IDEMPOTENCY_IN_FLIGHT or IDEMPOTENCY_KEY_REUSED. `instance`: one that
 * a lost replica may have claimed.
 */
export const findClaimByKey =
  ({ supervisor, clock, pendingRequests }: FindClaimDeps) =>
  async (
    owner: Tenant,
    mark: RequestFingerprint,
    instance?: InstanceId,
  ): Promise<SandboxView | undefined> => {
    if (pendingRequests.settled(mark)) throw idempotencyInFlight();
    if (instance !== undefined) {
      await supervisor.fence(instance, owner.namespace).catch((error: unknown) => {
        pendingRequests.add(mark, fenceLater({ supervisor, clock }, instance, owner.namespace));
        throw error instanceof Refusal
          ? error
          : unavailable(
              'the outcome of an earlier request is not known right now; repeat the request',
            );
      });
    }
    const id = supervisor.index.claimMarks.find(mark.key);
    const found = id === undefined ? undefined : supervisor.sandbox(id);
    const claim = found?.context.record?.claim;
    if (!found || !claim || !sameTenant(claim.owner, owner)) return undefined;
    if (claim.mark?.body !== mark.body) throw idempotencyKeyReused();
    return viewOf(found, clock.now());
  };

export const mayBeClaimedUnder = (
  { supervisor, pendingRequests }: FindClaimDeps,
  mark: RequestFingerprint,
): boolean =>
  pendingRequests.settled(mark) !== undefined ||
  supervisor.index.claimMarks.find(mark.key) !== undefined ||
  supervisor.index.claimMarks.hasEnded(mark.key);

/**
 * Whether an earlier claim may have ended. Call it after `findClaimByKey` found nothing, with the
 * same `instance`.
 */
export const mayHaveClaimed = (
  { supervisor }: Pick<FindClaimDeps, 'supervisor'>,
  mark: RequestFingerprint,
  instance: InstanceId | undefined,
): boolean => {
  if (supervisor.index.claimMarks.hasEnded(mark.key)) return true;
  if (instance === undefined) return false;
  const record = supervisor.sandbox(instance)?.context.record;
  // An idle instance was not claimed. Another claim excludes this request's.
  return record === undefined || record.claim?.mark?.key === mark.key;
};

/** Retries for a minute. Never rejects. */
const fenceLater = async (
  { supervisor, clock }: Pick<FindClaimDeps, 'supervisor' | 'clock'>,
  id: InstanceId,
  namespace: string,
): Promise<void> => {
  for (const until = clock.now() + SETTLE_MS; clock.now() < until;) {
    await pause(clock, FENCE_AGAIN_MS);
    if (
      await supervisor.fence(id, namespace).then(
        () => true,
        () => false,
      )
    )
      return;
  }
};
