import type { HeldInstance } from '../sandbox/held-instance.ts';
import type { SandboxSnapshot } from '../sandbox/sandbox-snapshot.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { sameClaim } from '../../model/pools/claim-rules.ts';
import { unavailable } from '../../model/refusals.ts';
import { isKeyed, type RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Claim } from '../../model/sandbox.ts';
import type { SandboxView } from '../views.ts';
import type { PendingRequests } from './pending-requests.ts';
import { viewOf } from '../sandbox/commands/sandbox-view.ts';

export interface ClaimWriteDeps {
  readonly supervisor: Supervisor;
  readonly coordination: Pick<Coordination, 'withdraw'>;
  readonly clock: Clock;
  /** Requests whose claim may yet land. */
  readonly pendingRequests: PendingRequests;
  /** Sees to work that outlives its request. */
  readonly background: (name: string, work: Promise<void>) => void;
}

/**
 * `lost`: another may be tried. The reservation of `left` is the caller's to give back or to move;
 * without one it is reconciled in the background.
 */
export type WriteOutcome =
  | { readonly kind: 'claimed'; readonly view: SandboxView }
  | { readonly kind: 'lost'; readonly left: InstanceId | undefined };

export interface ClaimWrite {
  readonly instance: HeldInstance;
  /** See QuotaEntry. */
  readonly attempt: string;
  readonly claim: Claim & { readonly mark: RequestFingerprint };
  readonly until: number;
}

const RECONCILE_MS = 60_000;

/**
 * Writes the claim of an instance that is reserved. One under an Idempotency-Key goes on to another
 * instance only once it is certain that this write did not land and never will: there are never two
 * sandboxes for one key.
 */
export const writeClaim = async (
  deps: ClaimWriteDeps,
  write: ClaimWrite,
): Promise<WriteOutcome> => {
  const { supervisor, clock } = deps;
  const {
    instance: { id },
    claim,
    until,
  } = write;
  supervisor.send(id, { type: 'CLAIM', claim, now: clock.now(), until });
  // It is not idle any more: nothing was written.
  if (supervisor.sandbox(id)?.state !== 'claiming') return { kind: 'lost', left: id };
  const isDecided = decidedOf(supervisor, id);
  const end = await supervisor.until(id, isKeyed(claim.mark) ? isDecided : isAnswered, until);
  if (!isDecided(end)) {
    reconcileLater(deps, write);
    if (isKeyed(claim.mark))
      throw unavailable(
        'the claim could not be settled; repeat it with the same key, or list your sandboxes',
      );
    if (!isAnswered(end))
      throw unavailable(
        'the claim could not be settled in time; list your sandboxes before trying again',
      );
    return { kind: 'lost', left: undefined };
  }
  const isOurs = sameClaim(end?.context.record?.claim, claim);
  if (end?.state === 'running' && isOurs)
    return { kind: 'claimed', view: viewOf(end, clock.now()) };
  // One that was ours and died at once gives its reservation back when its record is closed.
  return { kind: 'lost', left: isOurs ? undefined : id };
};

/** Whether the write was answered, or is not waited for any longer. */
const isAnswered = (snapshot: SandboxSnapshot | undefined): boolean =>
  snapshot?.state !== 'claiming';

/**
 * Tells whether the claim's outcome is known: it never lands once the instance is another's, or its
 * record gone. One whose actor threw is not gone.
 */
const decidedOf =
  (supervisor: Supervisor, id: InstanceId) =>
  (snapshot: SandboxSnapshot | undefined): boolean => {
    if (!snapshot) return !supervisor.actors.rebuilds.has(id);
    const {
      state,
      context: { record },
    } = snapshot;
    if (state === 'running') return true;
    return (
      (state === 'stopping' || state === 'completed') && (!record || record.claim !== undefined)
    );
  };

/**
 * Reconciles a claim of unknown outcome. The instance is held until that is known, or it is idle
 * again: no other claim is refused meanwhile for want of an instance.
 */
const reconcileLater = (deps: ClaimWriteDeps, write: ClaimWrite): void => {
  const { supervisor, clock, pendingRequests, background } = deps;
  const { instance, claim } = write;
  const isDecided = decidedOf(supervisor, instance.id);
  const isOver = (snapshot: SandboxSnapshot | undefined): boolean =>
    isDecided(snapshot) || snapshot?.state === 'idle';
  instance.holdDuring(supervisor.until(instance.id, isOver, clock.now() + RECONCILE_MS));
  const reconciled = reconcileReservation(deps, write);
  if (isKeyed(claim.mark))
    pendingRequests.add(
      claim.mark,
      reconciled.catch(() => undefined),
    );
  background('settle claim', reconciled);
};

/** A claim of unknown outcome keeps its reservation until the record tells whether it landed. */
const reconcileReservation = async (
  { supervisor, coordination, clock }: ClaimWriteDeps,
  { instance: { id }, attempt, claim }: ClaimWrite,
): Promise<void> => {
  const end = await supervisor.until(id, decidedOf(supervisor, id), clock.now() + RECONCILE_MS);
  if (!sameClaim(end?.context.record?.claim, claim))
    await coordination.withdraw(claim.owner, 'sandboxes', { name: id, attempt });
};
