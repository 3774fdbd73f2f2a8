import { randomUUID } from 'node:crypto';
import type { Metrics } from '../../contracts/metrics.ts';
import type { OnStep } from '../../contracts/tracing.ts';
import { isInstanceId, type InstanceId } from '../../model/identifiers.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { sandboxQuotaExceeded } from '../../model/limit-refusals.ts';
import { poolBeingDeleted, sandboxUuidFailed, unavailable } from '../../model/refusals.ts';
import {
  unkeyedFingerprint,
  type RequestFingerprint,
  isKeyed,
} from '../../model/request-fingerprint.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { ClaimRequest } from '../sandbox/commands/sandbox-operations.ts';
import type { QuotaLimits } from '../pool/commands/quota-limits.ts';
import type { ClaimEnv } from '../sandbox/claim-env.ts';
import type { ClaimFiles } from './claim-files.ts';
import { ClaimCandidates, type Candidate, type Candidates } from './claim-candidates.ts';
import { findAfterAdmission } from './earlier-claim.ts';
import { LaunchedCandidate, type LaunchedCandidateDeps } from './launched-candidate.ts';
import type { NewRequest } from '../request/idempotent-request.ts';
import { requireReserved } from '../sandbox/commands/reservations.ts';
import type { WaitingClaimLimit } from './waiting-claim-limit.ts';
import type { HeldInstance } from '../sandbox/idle-instances.ts';
import { type SandboxSnapshot, viewOf } from '../sandbox/sandbox-snapshot.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import { RESERVATION_MS } from '../../contracts/coordination/quotas.ts';
import { sameClaim } from '../../model/pools/claim-rules.ts';
import type { Claim } from '../../model/sandbox.ts';
import type { SandboxView } from '../views.ts';
import type { PendingRequests } from './pending-requests.ts';

export interface ClaimAttemptsDeps
  extends ClaimWriteDeps, Pick<LaunchedCandidateDeps, 'driver' | 'launchLimit' | 'allowedImages'> {
  readonly coordination: Coordination;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
  readonly waitingLimit: WaitingClaimLimit;
  readonly claimEnv: Pick<ClaimEnv, 'seal'>;
  readonly claimFiles: Pick<ClaimFiles, 'prepare'>;
}

export interface AttemptsOf {
  readonly pool: PoolRecord;
  readonly owner: Tenant;
  readonly request: ClaimRequest;
  readonly signal: AbortSignal | undefined;
  readonly step: ReturnType<typeof claimSteps>;
  readonly waits: () => void;
}

/**
 * Tries instances one after the other. `close` releases queue position and reservation; the caller
 * releases each candidate's instance.
 */
export class ClaimAttempts {
  readonly #deps: ClaimAttemptsDeps;
  readonly #of: AttemptsOf;
  readonly #candidates: Candidates;
  readonly #attempt = randomUUID();
  readonly #mark: RequestFingerprint;
  /** Won by another claim, while this attempt still has a reservation under its name. */
  #left: InstanceId | undefined;
  #hasLooked = false;
  #isServed = false;

  constructor(deps: ClaimAttemptsDeps, of: AttemptsOf) {
    const { pool, owner, request, signal, waits } = of;
    this.#deps = deps;
    this.#of = of;
    this.#mark = request.opening?.mark ?? request.mark ?? unkeyedFingerprint(this.#attempt);
    const { waitMs = 0, image } = request;
    this.#candidates = image
      ? new LaunchedCandidate(deps, { pool, owner, waitMs, signal, image })
      : new ClaimCandidates(deps, { pool, owner, waitMs, signal, waits });
  }

  async next(): Promise<Candidate | undefined> {
    return await this.#of.step(
      () => (this.#candidates.waits ? 'wait' : 'find'),
      () => this.#candidates.next(),
    );
  }

  /**
   * One step: opens the request, checks the turn and reserves quota. Returns the sandbox if an
   * earlier request with the key claimed one.
   */
  async admit(candidate: Candidate): Promise<'admitted' | 'refused' | SandboxView> {
    const { supervisor, coordination, clock } = this.#deps;
    const { owner, request, signal, step } = this.#of;
    const { instance } = candidate;
    if (!isInstanceId(instance.id)) {
      supervisor.send(instance.id, { type: 'RETIRE', now: clock.now() });
      throw sandboxUuidFailed();
    }
    const admission = await step('admit', () => this.#reserve(candidate));
    if (admission === 'not-its-turn') this.#candidates.notFirstInQueue(instance);
    if (typeof admission === 'object') {
      const found = await findAfterAdmission(this.#deps, request, { owner, ...admission });
      this.#hasLooked ||= admission.isUnsure;
      // A launched instance is the only candidate of its claim, so asks again.
      const asksAgain = request.image !== undefined && clock.now() < candidate.until;
      return found ?? (asksAgain ? await this.admit(candidate) : 'refused');
    }
    if (admission !== 'admitted') return 'refused';
    if (!signal?.aborted) return 'admitted';
    await coordination
      .withdraw(owner, 'sandboxes', { name: instance.id, attempt: this.#attempt })
      .catch(() => undefined); // reconciled later
    throw signal.reason;
  }

  async write({ instance, until }: Candidate, askedAt: number): Promise<SandboxView | undefined> {
    const {
      owner,
      request,
      step,
      pool: {
        definition: { idleTimeoutMs, maxLifetimeMs },
      },
    } = this.#of;
    const claim = {
      owner,
      claimedAt: askedAt,
      idleTimeoutMs: request.idleTimeoutMs ?? idleTimeoutMs,
      maxLifetimeMs,
      endsAt: request.lifetimeMs === undefined ? undefined : askedAt + request.lifetimeMs,
      mark: this.#mark,
      autoResume: request.autoResume || undefined,
      autoPause: request.autoPause || undefined,
      metadata: request.metadata,
      sealedEnv: request.env
        ? this.#deps.claimEnv.seal(instance.id, owner, request.env)
        : undefined,
    };
    if (request.files) this.#deps.claimFiles.prepare(instance.id);
    const outcome = await step('write', () =>
      writeClaim(this.#deps, { instance, attempt: this.#attempt, claim, until }),
    );
    if (outcome.kind === 'claimed') {
      this.#isServed = true; // its admission also left the queue
      if (request.image) this.#requirePoolOf(instance.id);
      return outcome.view;
    }
    this.#left = outcome.left;
    if (this.#deps.clock.now() >= until)
      throw unavailable('the pool did not answer the claim in time; try again');
    return undefined;
  }

  /** Its pool may have been force-deleted before the claim made it the pool's. */
  #requirePoolOf(id: InstanceId): void {
    const { supervisor, clock } = this.#deps;
    const pool = supervisor.pools.recordOf(this.#of.pool.uid);
    if (pool && pool.deleting !== 'force') return;
    supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
    throw poolBeingDeleted();
  }

  async close(): Promise<void> {
    const left = this.#left;
    const closed = this.#candidates.close();
    if (!this.#isServed) await closed;
    if (left === undefined) return;
    await this.#deps.coordination
      .withdraw(this.#of.owner, 'sandboxes', { name: left, attempt: this.#attempt })
      .catch(() => undefined);
  }

  /**
   * Returns an object if this opened the request: the caller must first check what an earlier owner
   * may have claimed.
   */
  async #reserve({
    instance: { id, idle },
    place,
  }: Candidate): Promise<'admitted' | 'not-its-turn' | NewRequest> {
    const { coordination, clock, quotaLimits } = this.#deps;
    const { pool, owner, request } = this.#of;
    const limit = quotaLimits.of(owner).sandboxes;
    const since = clock.now();
    const opening = request.opening?.isOpen ? undefined : request.opening;
    opening?.mayOpen();
    const from = this.#left;
    this.#left = undefined; // withdrawn by the admission, or reconciled later
    const admission = await coordination.admitClaim({
      pool,
      owner,
      instance: id,
      limit,
      idle,
      place,
      attempt: this.#attempt,
      from,
      looked: this.#hasLooked || request.opening?.isFirst === true,
      request: request.opening?.mark ?? request.mark,
      open: opening?.owner,
    });
    if (typeof admission === 'object')
      return { instance: opening?.took(admission.opened), isUnsure: false };
    if (admission === 'look-first') return { instance: undefined, isUnsure: true };
    if (admission === 'full') throw sandboxQuotaExceeded(limit);
    // Compared here too, because an `await` would delay every claim.
    if (admission === 'admitted' && clock.now() - since > RESERVATION_MS)
      await requireReserved(this.#deps, {
        tenant: owner,
        name: id,
        attempt: this.#attempt,
        resources: ['sandboxes'],
        since,
      });
    return admission;
  }
}

type ClaimStep = 'find' | 'wait' | 'admit' | 'write' | 'files';

export const claimSteps =
  (metrics: Metrics, tell?: OnStep) =>
  async <T>(step: ClaimStep | (() => ClaimStep), work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    try {
      return await work();
    } finally {
      const [name, ended] = [typeof step === 'string' ? step : step(), performance.now()];
      metrics.observe('sandpool_claim_step_seconds', { step: name }, (ended - began) / 1_000);
      tell?.(name, began, ended);
    }
  };

export interface ClaimWriteDeps {
  readonly supervisor: Supervisor;
  readonly coordination: Pick<Coordination, 'withdraw'>;
  readonly clock: Clock;
  readonly pendingRequests: PendingRequests;
  readonly background: (name: string, work: Promise<void>) => void;
}

/**
 * `lost`: another instance may be tried. The caller withdraws or moves the reservation of `left`;
 * without `left`, it is reconciled in the background.
 */
type WriteOutcome =
  | { readonly kind: 'claimed'; readonly view: SandboxView }
  | { readonly kind: 'lost'; readonly left: InstanceId | undefined };

interface ClaimWrite {
  readonly instance: HeldInstance;
  readonly attempt: string;
  readonly claim: Claim & { readonly mark: RequestFingerprint };
  readonly until: number;
}

const RECONCILE_MS = 60_000;

/**
 * Under an Idempotency-Key, another instance is tried only after this write can never land: one key
 * never gets two sandboxes.
 */
const writeClaim = async (deps: ClaimWriteDeps, write: ClaimWrite): Promise<WriteOutcome> => {
  const { supervisor, clock } = deps;
  const {
    instance: { id },
    claim,
    until,
  } = write;
  supervisor.send(id, { type: 'CLAIM', claim, now: clock.now(), until });
  // Nothing was written.
  if (supervisor.sandbox(id)?.state !== 'claiming') return { kind: 'lost', left: id };
  const isDecided = decidedOf(supervisor, id);
  const end = await supervisor.until(id, isKeyed(claim.mark) ? isDecided : isAnswered, until);
  if (!isDecided(end)) {
    reconcileLater(deps, write);
    if (isKeyed(claim.mark))
      throw unavailable(
        'the outcome of the claim is unknown; repeat it with the same key, or list your sandboxes',
      );
    if (!isAnswered(end))
      throw unavailable(
        'the outcome of the claim is not known in time; list your sandboxes before you try again',
      );
    return { kind: 'lost', left: undefined };
  }
  const isOurs = sameClaim(end?.context.record?.claim, claim);
  if (end?.state === 'running' && isOurs)
    return { kind: 'claimed', view: viewOf(end, clock.now()) };
  // If our instance died at once, the close of its record releases the reservation.
  return { kind: 'lost', left: isOurs ? undefined : id };
};

const isAnswered = (snapshot: SandboxSnapshot | undefined): boolean =>
  snapshot?.state !== 'claiming';

/**
 * A claim never lands after another won or the record is gone. An instance whose actor threw is not
 * gone.
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

/** Holds the instance until the outcome is known, so that other claims wait instead of failing. */
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

/** Keeps the reservation until the record shows whether the claim landed. */
const reconcileReservation = async (
  { supervisor, coordination, clock }: ClaimWriteDeps,
  { instance: { id }, attempt, claim }: ClaimWrite,
): Promise<void> => {
  const end = await supervisor.until(id, decidedOf(supervisor, id), clock.now() + RECONCILE_MS);
  if (!sameClaim(end?.context.record?.claim, claim))
    await coordination.withdraw(claim.owner, 'sandboxes', { name: id, attempt });
};
