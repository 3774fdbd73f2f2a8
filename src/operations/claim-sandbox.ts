import { randomUUID } from 'node:crypto';
import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination } from '../contracts/coordination.ts';
import type { PoolSnapshot } from '../actors/pool-host.ts';
import { sameClaim } from '../model/claim-rules.ts';
import { isInstanceId, type InstanceId } from '../model/identifiers.ts';
import { idempotencyInFlight, idempotencyKeyReused, noIdleInstance, poolBeingDeleted, poolNotOwned, poolToClaimNotFound, Refusal, sandboxQuotaExceeded, sandboxUuidFailed, unavailable } from '../model/refusals.ts';
import { isKeyed, type RequestMark, unkeyedMark } from '../model/request-mark.ts';
import type { Claim } from '../model/sandbox.ts';
import { sameTenant, type Caller, type Tenant } from '../model/tenant.ts';
import type { Operations } from './operations.ts';
import { requireReserved } from './reservations.ts';
import { viewOf } from './sandbox-view.ts';
import type { UnsettledRequests } from './unsettled-requests.ts';
import type { SandboxView } from './views.ts';

export interface ClaimSandboxDeps {
  readonly supervisor: Supervisor;
  readonly coordination: Coordination;
  readonly clock: Clock;
  /** The most that a tenant may hold. */
  readonly sandboxLimit: number;
  /** Requests whose claim may yet land. */
  readonly unsettled: UnsettledRequests;
  /** Sees to work that outlives its request. */
  readonly background: (name: string, work: Promise<void>) => void;
}

const DEADLINE_MS = 5_000;
const SETTLE_MS = 60_000;
const FENCE_AGAIN_MS = 1_000;
const MOST_CHOICES = 50;

/** Claims one idle instance of a pool of the caller's (operation `POST /sandboxes`). What it answers is durable. */
export const claimSandbox = (deps: ClaimSandboxDeps): Operations['claimSandbox'] => async (caller, request) => {
  const { supervisor, coordination, clock } = deps;
  const pool = await claimablePool(supervisor, caller, request.poolName);
  const owner: Tenant = { namespace: caller.namespace, team: caller.team, user: caller.user };
  const until = clock.now() + DEADLINE_MS;
  const mark = request.mark ?? unkeyedMark(randomUUID());
  /** The seat of an instance that was lost to us. */
  let left: InstanceId | undefined;
  try {
    for (;;) {
      const { uid } = pool.record;
      const id = supervisor.takeIdle(uid) ?? await supervisor.findIdle(uid, pool.record.owner.namespace);
      if (id === undefined) {
        // One that another claim holds and does not get was idle all the while.
        if (clock.now() >= until || !await supervisor.untilPutBack(uid, until)) break;
        continue;
      }
      if (!isInstanceId(id)) {
        supervisor.send(id, { type: 'RETIRE', now: clock.now() });
        throw sandboxUuidFailed();
      }
      const from = left;
      left = undefined; // withdrawn in the same step, or settled later
      await takeSeat(deps, owner, { id, from, mark: request.mark });
      const { idleTimeoutMs, maxLifetimeMs } = pool.record.definition;
      const claim = { owner, claimedAt: clock.now(), idleTimeoutMs: request.idleTimeoutMs ?? idleTimeoutMs, maxLifetimeMs, mark };
      const end = await attempt(deps, { id, claim, until });
      if (end.kind === 'claimed') return end.view;
      left = end.seat;
      if (clock.now() >= until) throw unavailable('the pool could not be claimed from in time; try again');
    }
  } finally {
    if (left !== undefined) await coordination.withdraw(owner, 'sandboxes', left).catch(() => undefined);
  }
  throw noIdleInstance(supervisor.pools.get(pool.record.uid)?.counts ?? pool.counts);
};

/** See Operations. A request is found by the mark on the record that it claimed. */
export const claimedUnder = ({ supervisor, clock, unsettled }: Pick<ClaimSandboxDeps, 'supervisor' | 'clock' | 'unsettled'>): Operations['claimedUnder'] => async (caller, mark, instance) => {
  if (unsettled.settled(mark)) throw idempotencyInFlight();
  if (instance !== undefined) {
    await supervisor.fence(instance, caller.namespace).catch((error: unknown) => {
      unsettled.add(mark, fenceLater({ supervisor, clock }, instance, caller.namespace));
      throw error instanceof Refusal ? error : unavailable('what an earlier request did can not be told now; repeat the request');
    });
  }
  const id = supervisor.index.claimedUnder(mark.key);
  const found = id === undefined ? undefined : supervisor.sandbox(id);
  const claim = found?.context.record?.claim;
  if (!found || !claim || !sameTenant(claim.owner, caller)) return undefined;
  if (claim.mark?.body !== mark.body) throw idempotencyKeyReused();
  return viewOf(found, clock.now());
};

/** Never rejects; gives up after a minute. */
const fenceLater = async ({ supervisor, clock }: Pick<ClaimSandboxDeps, 'supervisor' | 'clock'>, id: InstanceId, namespace: string): Promise<void> => {
  for (const until = clock.now() + SETTLE_MS; clock.now() < until;) {
    await new Promise<void>((resolve) => { clock.at(clock.now() + FENCE_AGAIN_MS, resolve); });
    if (await supervisor.fence(id, namespace).then(() => true, () => false)) return;
  }
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

interface Seat { readonly id: InstanceId; readonly from: InstanceId | undefined; readonly mark: RequestMark | undefined }

/** Quota before the claim; the instance goes back to the queue when there is none left. `from`: the seat of one that is given up for it. */
const takeSeat = async (deps: ClaimSandboxDeps, owner: Tenant, { id, from, mark }: Seat): Promise<void> => {
  const { coordination, supervisor, clock, sandboxLimit } = deps;
  const entry = { name: id, amount: 1, limit: sandboxLimit, ...(mark ? { request: mark } : {}) };
  const since = clock.now();
  let granted = false;
  try {
    const reserved = from === undefined ? await coordination.reserve(owner, 'sandboxes', entry) : await coordination.move(owner, 'sandboxes', from, entry);
    if (reserved) await requireReserved(deps, { tenant: owner, name: id, resources: ['sandboxes'], since });
    granted = reserved;
  } finally {
    if (!granted) supervisor.putBack(id);
  }
  if (!granted) throw sandboxQuotaExceeded(sandboxLimit);
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
