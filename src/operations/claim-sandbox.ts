import { randomUUID } from 'node:crypto';
import type { PoolDemand } from '../actors/pool-demand.ts';
import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import { RequestNotNew, type Coordination } from '../contracts/coordination.ts';
import type { Metrics } from '../contracts/metrics.ts';
import type { PoolSnapshot } from '../actors/pool-snapshot.ts';
import { sameClaim } from '../model/claim-rules.ts';
import { isInstanceId, type InstanceId } from '../model/identifiers.ts';
import { noIdleInstance, poolBeingDeleted, poolNotOwned, poolToClaimNotFound, sandboxQuotaExceeded, sandboxUuidFailed, unavailable } from '../model/refusals.ts';
import type { PoolRecord } from '../model/pool.ts';
import { isKeyed, type RequestMark, unkeyedMark } from '../model/request-mark.ts';
import type { Claim } from '../model/sandbox.ts';
import { sameTenant, type Caller, type Tenant } from '../model/tenant.ts';
import { ClaimCandidates, type Candidate } from './claim-candidates.ts';
import { claimSteps, measuredClaims } from './claim-measures.ts';
import { claimedUnder, mayBeClaimedUnder } from './claimed-under.ts';
import type { Opening } from './opening.ts';
import type { ClaimRequest, Operations } from './operations.ts';
import type { QuotaLimits } from './quota-limits.ts';
import { requireReserved } from './reservations.ts';
import { viewOf } from './sandbox-view.ts';
import type { UnsettledRequests } from './unsettled-requests.ts';
import type { SandboxView } from './views.ts';
import { WaitingSeats } from './waiting-seats.ts';

export interface ClaimSandboxDeps {
  readonly supervisor: Supervisor;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
  /** Told what claims lack; nobody where it is absent. */
  readonly demand?: ClaimDemand;
  readonly metrics?: Metrics;
  /** Requests whose claim may yet land. */
  readonly unsettled: UnsettledRequests;
  /** Sees to work that outlives its request. */
  readonly background: (name: string, work: Promise<void>) => void;
}

export type ClaimDemand = Pick<PoolDemand, 'waits' | 'refused' | 'served'>;

const SETTLE_MS = 60_000;
const MOST_CHOICES = 50;

/**
 * Claims one idle instance of a pool of the caller's (operation `POST /sandboxes`), where it waits the first one that nobody else
 * waits longer for. What it answers is durable.
 */
export const claimSandbox = (deps: ClaimSandboxDeps): Operations['claimSandbox'] => {
  const claim = claimOne(deps, new WaitingSeats());
  return measuredClaims(async (caller, request, signal) => {
    const { opening } = request;
    if (!opening) return await claim(caller, request, signal);
    // One that waits is in flight meanwhile; else it is opened by the admission, unless something of an earlier one is known.
    const early = (request.waitMs ?? 0) > 0 || mayBeClaimedUnder(deps, opening.mark);
    const found = early ? await openAndFind(deps, caller, opening) : undefined;
    if (found) return found;
    try {
      return await claim(caller, request, signal);
    } catch (error) {
      // An earlier one may have been carried out all the same.
      const earlier = opening.isOpen || error instanceof RequestNotNew ? undefined : await openAndFind(deps, caller, opening);
      if (earlier) return earlier;
      throw error;
    }
  }, deps.metrics);
};

const openAndFind = async (deps: ClaimSandboxDeps, caller: Caller, opening: Opening): Promise<SandboxView | undefined> =>
  await findEarlier(deps, opening, await opening.open(), caller);

/** What an earlier one claimed. */
const findEarlier = async (deps: ClaimSandboxDeps, opening: Opening, instance: InstanceId | undefined, owner: Tenant): Promise<SandboxView | undefined> => {
  const found = await claimedUnder(deps)(owner, opening.mark, instance);
  opening.foundEarlier = found !== undefined;
  return found;
};

const claimOne = (deps: ClaimSandboxDeps, seats: WaitingSeats): Operations['claimSandbox'] => async (caller, request, signal) => {
  const { supervisor, coordination, clock } = deps;
  const step = claimSteps(deps.metrics, request.step);
  const pool = await claimablePool(supervisor, caller, request.poolName);
  const demand = pool.record.env && deps.demand; // nobody sizes others
  const candidates = new ClaimCandidates({ ...deps, seats }, { pool: pool.record, waitMs: request.waitMs ?? 0, signal, waits: () => { demand?.waits(pool.record.uid, caller.keyId); } });
  const mark = request.opening?.mark ?? request.mark ?? unkeyedMark(randomUUID());
  const next = (): Promise<Candidate | undefined> => step(() => (candidates.waits ? 'wait' : 'find'), () => candidates.next());
  /** The seat of an instance that was lost to us. */
  let left: InstanceId | undefined;
  try {
    for (let candidate = await next(); candidate; candidate = await next()) {
      if (!isInstanceId(candidate.id)) {
        supervisor.send(candidate.id, { type: 'RETIRE', now: clock.now() });
        throw sandboxUuidFailed();
      }
      const from = left;
      left = undefined; // withdrawn in the same step, or settled later
      const admission = await step('admit', () => admit(deps, pool.record, { candidate, from, request }));
      if (admission === 'not-its-turn') candidates.notItsTurn(candidate);
      if (typeof admission === 'object') {
        supervisor.idle.putBack(candidate.id);
        const found = request.opening && await findEarlier(deps, request.opening, admission.instance, caller);
        if (found) return found;
      }
      if (admission !== 'admitted') continue;
      if (signal?.aborted) {
        await coordination.withdraw(pool.record.owner, 'sandboxes', candidate.id).catch(() => undefined); // then it is settled
        supervisor.idle.putBack(candidate.id);
        throw signal.reason;
      }
      const { idleTimeoutMs, maxLifetimeMs } = pool.record.definition;
      const claim = { owner: pool.record.owner, claimedAt: clock.now(), idleTimeoutMs: request.idleTimeoutMs ?? idleTimeoutMs, maxLifetimeMs, mark };
      const end = await step('write', () => attempt(deps, { id: candidate.id, claim, until: candidate.until }));
      if (end.kind === 'claimed') {
        demand?.served(pool.record.uid, caller.keyId);
        return end.view;
      }
      left = end.seat;
      if (clock.now() >= candidate.until) throw unavailable('the pool could not be claimed from in time; try again');
    }
  } finally {
    candidates.close();
    if (left !== undefined) await coordination.withdraw(pool.record.owner, 'sandboxes', left).catch(() => undefined);
  }
  demand?.refused(pool.record.uid, caller.keyId);
  throw noIdleInstance(supervisor.pools.get(pool.record.uid)?.counts ?? pool.counts);
};

/** The pool if the caller may claim from it: own namespace first, elsewhere only to say that it is another's. */
const claimablePool = async (supervisor: Supervisor, caller: Caller, name: string): Promise<PoolSnapshot> => {
  if (supervisor.pools.index.uidOf(caller.namespace, name) === undefined) await supervisor.pools.lookUp(caller.namespace, name);
  const uid = supervisor.pools.index.uidOf(caller.namespace, name);
  const pool = uid === undefined ? undefined : supervisor.pools.get(uid);
  if (!pool) throw supervisor.pools.index.existsAnywhere(name) ? poolNotOwned() : poolToClaimNotFound(poolsOf(supervisor, caller));
  if (!sameTenant(pool.record.owner, caller)) throw poolNotOwned();
  if (pool.record.deleting !== false) throw poolBeingDeleted();
  return pool;
};

const poolsOf = (supervisor: Supervisor, caller: Caller) =>
  supervisor.pools.index.list(caller, 0, MOST_CHOICES).ids.flatMap((uid) => {
    const pool = supervisor.pools.get(uid);
    if (!pool) return [];
    const { name, owner: { namespace } } = pool.record;
    return [{ name, namespace, idle: pool.counts.idle, running: pool.counts.running, starting: pool.counts.starting }];
  });

interface Admitted { readonly candidate: Candidate; readonly from: InstanceId | undefined; readonly request: ClaimRequest }

/**
 * The request, its turn and its seat, in one step before the claim; the instance goes back where it is refused. An object: the request is
 * open now, and what its former owner did with an instance is to be looked at first. `from`: the seat of one that is given up.
 */
const admit = async (deps: ClaimSandboxDeps, pool: PoolRecord, { candidate, from, request }: Admitted): Promise<'admitted' | 'not-its-turn' | { readonly instance: InstanceId | undefined }> => {
  const { coordination, supervisor, clock, quotaLimits } = deps;
  const { id, idle, place } = candidate;
  const limit = quotaLimits.of(pool.owner).sandboxes;
  const since = clock.now();
  const opening = request.opening?.isOpen ? undefined : request.opening;
  let decided = false;
  try {
    opening?.mayOpen();
    const admission = await coordination.admitClaim({ pool, instance: id, limit, idle, place, from, request: request.opening?.mark ?? request.mark, open: opening?.owner });
    if (typeof admission === 'object') {
      const instance = opening?.took(admission.opened);
      decided = true;
      return { instance };
    }
    if (admission === 'full') throw sandboxQuotaExceeded(limit);
    if (admission === 'admitted') await requireReserved(deps, { tenant: pool.owner, name: id, resources: ['sandboxes'], since });
    decided = true;
    return admission;
  } finally {
    if (!decided) supervisor.idle.putBack(id);
  }
};

/** `lost`: another may be tried; `seat` is ours to give back or to move, where it is not settled in the background. */
type Attempt = { readonly kind: 'claimed'; readonly view: SandboxView } | { readonly kind: 'lost'; readonly seat: InstanceId | undefined };

interface Attempted {
  readonly id: InstanceId;
  readonly claim: Claim & { readonly mark: RequestMark };
  readonly until: number;
}

const attempt = async (deps: ClaimSandboxDeps, attempted: Attempted): Promise<Attempt> => {
  const { supervisor, clock } = deps;
  const { id, claim, until } = attempted;
  supervisor.send(id, { type: 'CLAIM', claim, now: clock.now(), until });
  const end = await supervisor.until(id, (snapshot) => snapshot?.state !== 'claiming', until);
  if (end?.state === 'claiming') {
    settleLater(deps, attempted);
    throw unavailable('the claim could not be settled in time; list your sandboxes before trying again');
  }
  const ours = sameClaim(end?.context.record?.claim, claim);
  // Being retired because the claim's outcome stayed unknown: until the record is gone it may have landed.
  if (end?.state === 'stopping' && end.context.record && !end.context.record.claim) {
    settleLater(deps, attempted);
    if (isKeyed(claim.mark)) throw unavailable('the claim could not be settled; repeat the request');
    return { kind: 'lost', seat: undefined };
  }
  if (end?.state === 'running' && ours) return { kind: 'claimed', view: viewOf(end, clock.now()) };
  // One that was ours and died at once gives its seat back when its record is closed.
  return { kind: 'lost', seat: ours ? undefined : id };
};

const settleLater = (deps: ClaimSandboxDeps, { id, claim }: Attempted): void => {
  const settled = settleSeat(deps, id, claim);
  if (isKeyed(claim.mark)) deps.unsettled.add(claim.mark, settled.catch(() => undefined));
  deps.background('settle claim', settled);
};

/** A claim of unknown outcome keeps its seat until the record tells whether it landed. */
const settleSeat = async ({ supervisor, coordination, clock }: ClaimSandboxDeps, id: InstanceId, claim: Claim): Promise<void> => {
  const end = await supervisor.until(id, (snapshot) => snapshot === undefined || snapshot.state === 'running', clock.now() + SETTLE_MS);
  if (!sameClaim(end?.context.record?.claim, claim)) await coordination.withdraw(claim.owner, 'sandboxes', id);
};
