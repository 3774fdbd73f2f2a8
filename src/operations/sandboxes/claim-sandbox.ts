import { randomUUID } from 'node:crypto';
import type { PoolDemand } from '../../actors/pool/pool-demand.ts';
import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import { RequestNotNew, type Coordination } from '../../contracts/coordination.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { HeldInstance } from '../../actors/sandbox/held-instance.ts';
import type { PoolSnapshot } from '../../actors/pool/pool-snapshot.ts';
import type { SandboxSnapshot } from '../../actors/sandbox/sandbox-snapshot.ts';
import { sameClaim } from '../../model/pools/claim-rules.ts';
import { noIdleInstance } from '../../model/pools/exhausted-pool.ts';
import { isInstanceId, type InstanceId } from '../../model/identifiers.ts';
import {
  poolBeingDeleted,
  poolNotOwned,
  poolToClaimNotFound,
  sandboxQuotaExceeded,
  sandboxUuidFailed,
  unavailable,
} from '../../model/refusals.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import {
  isKeyed,
  type RequestFingerprint,
  unkeyedFingerprint,
} from '../../model/request-fingerprint.ts';
import type { Claim } from '../../model/sandbox.ts';
import { mayUse, sameTenant, type Caller, type Tenant } from '../../model/tenant.ts';
import { ClaimCandidates, type Candidate } from './claim-candidates.ts';
import { claimSteps, measuredClaims } from './claim-measures.ts';
import { findClaimByKey, mayBeClaimedUnder } from './find-claim-by-key.ts';
import type { NewRequest, IdempotentRequest } from './idempotent-request.ts';
import type { ClaimRequest, Operations } from '../operations.ts';
import type { QuotaLimits } from '../pools/quota-limits.ts';
import { requireReserved } from './reservations.ts';
import { viewOf } from './sandbox-view.ts';
import { hindranceOf } from './start-hindrance.ts';
import type { PendingRequests } from './pending-requests.ts';
import type { SandboxView } from '../views.ts';
import { WaitingClaimLimit } from './waiting-claim-limit.ts';

export interface ClaimSandboxDeps {
  readonly supervisor: Supervisor;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
  /** Told what claims lack; nobody where it is absent. */
  readonly demand?: ClaimDemand;
  readonly metrics?: Metrics;
  /** Requests whose claim may yet land. */
  readonly pendingRequests: PendingRequests;
  /** Sees to work that outlives its request. */
  readonly background: (name: string, work: Promise<void>) => void;
}

export type ClaimDemand = Pick<PoolDemand, 'waits' | 'refused' | 'served'>;

const SETTLE_MS = 60_000;
const MOST_CHOICES = 50;

/**
 * Claims one idle instance of a pool of the caller's or of one shared with the caller (operation
 * `POST /sandboxes`), where it waits the first one that nobody else waits longer for. What it
 * answers is durable.
 */
export const claimSandbox = (deps: ClaimSandboxDeps): Operations['claimSandbox'] => {
  const claim = claimOne(deps, new WaitingClaimLimit());
  return measuredClaims(async (caller, request, signal) => {
    const { opening } = request;
    if (!opening) return await claim(caller, request, signal);
    // One that waits is in flight meanwhile; else it is opened by the admission, unless something of an
    // earlier one is known.
    const early = (request.waitMs ?? 0) > 0 || mayBeClaimedUnder(deps, opening.mark);
    const found = early ? await openAndFind(deps, caller, opening) : undefined;
    if (found) return found;
    try {
      return await claim(caller, request, signal);
    } catch (error) {
      // An earlier one may have been carried out all the same.
      const earlier =
        opening.isOpen || error instanceof RequestNotNew
          ? undefined
          : await openAndFind(deps, caller, opening);
      if (earlier) return earlier;
      throw error;
    }
  }, deps.metrics);
};

const openAndFind = async (
  deps: ClaimSandboxDeps,
  caller: Caller,
  opening: IdempotentRequest,
): Promise<SandboxView | undefined> => {
  const { instance, isUnsure } = await opening.open();
  if (isUnsure) await deps.supervisor.refreshClaimsByKey(opening.mark.key, caller.namespace);
  return await findEarlier(deps, opening, instance, caller);
};

/** What an earlier one claimed. */
const findEarlier = async (
  deps: ClaimSandboxDeps,
  opening: IdempotentRequest,
  instance: InstanceId | undefined,
  owner: Tenant,
): Promise<SandboxView | undefined> => {
  const found = await findClaimByKey(deps)(owner, opening.mark, instance);
  opening.foundEarlier = found !== undefined;
  return found;
};

/** What an earlier request claimed that only the admission showed to be possible. */
const lookForEarlier = async (
  deps: ClaimSandboxDeps,
  {
    request,
    owner,
    instance,
    isUnsure,
  }: NewRequest & { readonly request: ClaimRequest; readonly owner: Tenant },
): Promise<SandboxView | undefined> => {
  const mark = request.opening?.mark ?? request.mark;
  if (!mark) return undefined;
  if (isUnsure) await deps.supervisor.refreshClaimsByKey(mark.key, owner.namespace);
  return request.opening
    ? await findEarlier(deps, request.opening, instance, owner)
    : await findClaimByKey(deps)(owner, mark, instance);
};

const claimOne =
  (deps: ClaimSandboxDeps, waitingLimit: WaitingClaimLimit): Operations['claimSandbox'] =>
  async (caller, request, signal) => {
    const { supervisor, coordination, clock } = deps;
    const step = claimSteps(deps.metrics, request.step);
    const pool = await claimablePool(supervisor, caller, request.poolName);
    const demand = pool.record.env && deps.demand; // nobody sizes others
    const owner: Tenant = { namespace: caller.namespace, team: caller.team, user: caller.user };
    if (!sameTenant(pool.record.owner, owner)) {
      supervisor.reconcileLater(owner); // one without pools is settled by nobody else
      await coordination.whenKnown(owner);
    }
    const candidates = new ClaimCandidates(
      { ...deps, waitingLimit },
      {
        pool: pool.record,
        owner,
        waitMs: request.waitMs ?? 0,
        signal,
        waits: () => {
          demand?.waits(pool.record.uid, caller.keyId);
        },
      },
    );
    const attempt = randomUUID();
    const mark = request.opening?.mark ?? request.mark ?? unkeyedFingerprint(attempt);
    const next = (): Promise<Candidate | undefined> =>
      step(
        () => (candidates.waits ? 'wait' : 'find'),
        () => candidates.next(),
      );
    /** An instance that was lost to us, and whose reservation we have. */
    let left: InstanceId | undefined;
    let looked = false;
    let isServed = false;
    try {
      for (let candidate = await next(); candidate; candidate = await next()) {
        using instance = candidate.instance;
        if (!isInstanceId(instance.id)) {
          supervisor.send(instance.id, { type: 'RETIRE', now: clock.now() });
          throw sandboxUuidFailed();
        }
        const from = left;
        left = undefined; // withdrawn in the same step, or settled later
        const askedAt = clock.now();
        const admission = await step('admit', () =>
          admit(deps, pool.record, { owner, candidate, attempt, from, looked, request }),
        );
        if (admission === 'not-its-turn') candidates.notFirstInQueue(instance);
        if (typeof admission === 'object') {
          const found = await lookForEarlier(deps, { request, owner: caller, ...admission });
          if (found) return found;
          looked ||= admission.isUnsure;
        }
        if (admission !== 'admitted') continue;
        if (signal?.aborted) {
          await coordination
            .withdraw(owner, 'sandboxes', instance.id, attempt)
            .catch(() => undefined); // then it is settled
          throw signal.reason;
        }
        const { idleTimeoutMs, maxLifetimeMs } = pool.record.definition;
        const claim = {
          owner,
          claimedAt: askedAt,
          idleTimeoutMs: request.idleTimeoutMs ?? idleTimeoutMs,
          maxLifetimeMs,
          mark,
        };
        const end = await step('write', () =>
          tryToClaim(deps, { instance, attempt, claim, until: candidate.until }),
        );
        if (end.kind === 'claimed') {
          demand?.served(pool.record.uid, caller.keyId);
          isServed = true; // and has left the line with its admission
          return end.view;
        }
        left = end.left;
        if (clock.now() >= candidate.until)
          throw unavailable('the pool could not be claimed from in time; try again');
      }
    } finally {
      const closed = candidates.close();
      if (!isServed) await closed;
      if (left !== undefined)
        await coordination.withdraw(owner, 'sandboxes', left, attempt).catch(() => undefined);
    }
    demand?.refused(pool.record.uid, caller.keyId);
    const standing = supervisor.pools.get(pool.record.uid) ?? pool;
    const {
      name,
      env,
      owner: { team, user },
    } = standing.record;
    const whose = {
      name,
      env: env?.name,
      of: sameTenant(standing.record.owner, owner) ? undefined : `${team}/${user}`,
    };
    throw noIdleInstance(whose, standing.counts, hindranceOf(supervisor, standing));
  };

/**
 * The pool if the caller may claim from it: own namespace first, elsewhere only to say that it is
 * another's.
 */
const claimablePool = async (
  supervisor: Supervisor,
  caller: Caller,
  name: string,
): Promise<PoolSnapshot> => {
  if (supervisor.pools.index.uidOf(caller.namespace, name) === undefined)
    await supervisor.pools.lookUp(caller.namespace, name);
  const uid = supervisor.pools.index.uidOf(caller.namespace, name);
  const pool = uid === undefined ? undefined : supervisor.pools.get(uid);
  if (!pool && supervisor.pools.unhosted(caller.namespace, name))
    throw unavailable('the pool can not be used now; try again');
  if (!pool)
    throw supervisor.pools.index.existsAnywhere(name)
      ? poolNotOwned()
      : poolToClaimNotFound(poolsOf(supervisor, caller));
  if (!mayUse(pool.record, caller)) throw poolNotOwned();
  if (pool.record.deleting !== false) throw poolBeingDeleted();
  return pool;
};

const poolsOf = (supervisor: Supervisor, caller: Caller) =>
  supervisor.pools.index.listFor(caller, 0, MOST_CHOICES).ids.flatMap((uid) => {
    const pool = supervisor.pools.get(uid);
    if (!pool) return [];
    const {
      name,
      owner: { namespace },
    } = pool.record;
    return [
      {
        name,
        namespace,
        idle: pool.counts.idle,
        running: pool.counts.running,
        starting: pool.counts.starting,
      },
    ];
  });

interface Admitted {
  readonly owner: Tenant;
  readonly candidate: Candidate;
  readonly attempt: string;
  readonly from: InstanceId | undefined;
  readonly looked: boolean;
  readonly request: ClaimRequest;
}

/**
 * Asks for the request, its turn and its reservation, in one step before the claim. Returns an
 * object where the request is open now, and what its former owner did with an instance is to be
 * looked at first. `from`: an instance whose reservation is given up.
 */
const admit = async (
  deps: ClaimSandboxDeps,
  pool: PoolRecord,
  { owner, candidate, attempt, from, looked, request }: Admitted,
): Promise<'admitted' | 'not-its-turn' | NewRequest> => {
  const { coordination, clock, quotaLimits } = deps;
  const {
    instance: { id, idle },
    place,
  } = candidate;
  const limit = quotaLimits.of(owner).sandboxes;
  const since = clock.now();
  const opening = request.opening?.isOpen ? undefined : request.opening;
  opening?.mayOpen();
  const admission = await coordination.admitClaim({
    pool,
    owner,
    instance: id,
    limit,
    idle,
    place,
    attempt,
    from,
    looked,
    request: request.opening?.mark ?? request.mark,
    open: opening?.owner,
  });
  if (typeof admission === 'object')
    return { instance: opening?.took(admission.opened), isUnsure: false };
  if (admission === 'look-first') return { instance: undefined, isUnsure: true };
  if (admission === 'full') throw sandboxQuotaExceeded(limit);
  if (admission === 'admitted')
    await requireReserved(deps, {
      tenant: owner,
      name: id,
      attempt,
      resources: ['sandboxes'],
      since,
    });
  return admission;
};

/**
 * `lost`: another may be tried. The reservation of `left` is ours to give back or to move; without
 * one it is settled in the background.
 */
type Attempt =
  | { readonly kind: 'claimed'; readonly view: SandboxView }
  | { readonly kind: 'lost'; readonly left: InstanceId | undefined };

interface Attempted {
  readonly instance: HeldInstance;
  /** See QuotaEntry. */
  readonly attempt: string;
  readonly claim: Claim & { readonly mark: RequestFingerprint };
  readonly until: number;
}

/**
 * Writes the claim. One under an Idempotency-Key goes on to another instance only once it is
 * certain that this write did not land and never will: there are never two sandboxes for one key.
 */
const tryToClaim = async (deps: ClaimSandboxDeps, attempted: Attempted): Promise<Attempt> => {
  const { supervisor, clock } = deps;
  const {
    instance: { id },
    claim,
    until,
  } = attempted;
  supervisor.send(id, { type: 'CLAIM', claim, now: clock.now(), until });
  // It is not idle any more: nothing was written.
  if (supervisor.sandbox(id)?.state !== 'claiming') return { kind: 'lost', left: id };
  const isDecided = decidedOf(supervisor, id);
  const end = await supervisor.until(id, isKeyed(claim.mark) ? isDecided : hasEnded, until);
  if (!isDecided(end)) {
    reconcileLater(deps, attempted);
    if (isKeyed(claim.mark))
      throw unavailable('the claim could not be settled; repeat the request');
    if (!hasEnded(end)) {
      throw unavailable(
        'the claim could not be settled in time; list your sandboxes before trying again',
      );
    }
    return { kind: 'lost', left: undefined };
  }
  const isOurs = sameClaim(end?.context.record?.claim, claim);
  if (end?.state === 'running' && isOurs)
    return { kind: 'claimed', view: viewOf(end, clock.now()) };
  // One that was ours and died at once gives its reservation back when its record is closed.
  return { kind: 'lost', left: isOurs ? undefined : id };
};

/** Tells whether the write was answered, or is not waited for any longer. */
const hasEnded = (snapshot: SandboxSnapshot | undefined): boolean => snapshot?.state !== 'claiming';

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
 * Settles a claim of unknown outcome. The instance is held until that is known, or it is idle
 * again: no other claim is refused meanwhile for want of an instance.
 */
const reconcileLater = (deps: ClaimSandboxDeps, attempted: Attempted): void => {
  const { instance, claim } = attempted;
  const isDecided = decidedOf(deps.supervisor, instance.id);
  const isOver = (snapshot: SandboxSnapshot | undefined): boolean =>
    isDecided(snapshot) || snapshot?.state === 'idle';
  instance.holdDuring(deps.supervisor.until(instance.id, isOver, deps.clock.now() + SETTLE_MS));
  const settled = reconcileReservation(deps, attempted);
  if (isKeyed(claim.mark))
    deps.pendingRequests.add(
      claim.mark,
      settled.catch(() => undefined),
    );
  deps.background('settle claim', settled);
};

/** A claim of unknown outcome keeps its reservation until the record tells whether it landed. */
const reconcileReservation = async (
  { supervisor, coordination, clock }: ClaimSandboxDeps,
  { instance: { id }, attempt, claim }: Attempted,
): Promise<void> => {
  const end = await supervisor.until(id, decidedOf(supervisor, id), clock.now() + SETTLE_MS);
  if (!sameClaim(end?.context.record?.claim, claim))
    await coordination.withdraw(claim.owner, 'sandboxes', id, attempt);
};
