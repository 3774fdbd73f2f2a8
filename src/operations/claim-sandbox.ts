import { randomUUID } from 'node:crypto';
import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination } from '../contracts/coordination.ts';
import type { PoolSnapshot } from '../actors/pool-host.ts';
import { sameClaim } from '../model/claim-rules.ts';
import { isInstanceId, type InstanceId } from '../model/identifiers.ts';
import { idempotencyInFlight, idempotencyKeyReused, noIdleInstance, poolBeingDeleted, poolNotOwned, poolToClaimNotFound, sandboxQuotaExceeded, sandboxUuidFailed, unavailable } from '../model/refusals.ts';
import { isKeyed, unkeyedMark } from '../model/request-mark.ts';
import type { Claim } from '../model/sandbox.ts';
import { sameTenant, type Caller, type Tenant } from '../model/tenant.ts';
import type { Operations } from './operations.ts';
import { viewOf } from './sandbox-view.ts';
import type { SandboxView } from './views.ts';

export interface ClaimSandboxDeps {
  readonly supervisor: Supervisor;
  readonly coordination: Coordination;
  readonly clock: Clock;
  /** The most that a tenant may hold. */
  readonly sandboxLimit: number;
  /** Keys of requests whose claim may yet land. */
  readonly unsettled: Set<string>;
  /** Sees to work that outlives its request. */
  readonly background: (name: string, work: Promise<void>) => void;
}

const DEADLINE_MS = 5_000;
const SETTLE_MS = 60_000;
const MOST_CHOICES = 50;

/** Claims one idle instance of a pool of the caller's (operation `POST /sandboxes`). What it answers is durable. */
export const claimSandbox = (deps: ClaimSandboxDeps): Operations['claimSandbox'] => async (caller, request) => {
  const { supervisor, clock } = deps;
  const pool = await claimablePool(supervisor, caller, request.poolName);
  const owner: Tenant = { namespace: caller.namespace, team: caller.team, user: caller.user };
  const until = clock.now() + DEADLINE_MS;
  const mark = request.mark ?? unkeyedMark(randomUUID());
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
    await takeSeat(deps, owner, id);
    const { idleTimeoutMs, maxLifetimeMs } = pool.record.definition;
    const claim: Claim = { owner, claimedAt: clock.now(), idleTimeoutMs: request.idleTimeoutMs ?? idleTimeoutMs, maxLifetimeMs, mark };
    const claimed = await attempt(deps, id, claim, until);
    if (claimed) return claimed;
    if (clock.now() >= until) throw unavailable('the pool could not be claimed from in time; try again');
  }
  throw noIdleInstance(supervisor.pools.get(pool.record.uid)?.counts ?? pool.counts);
};

/** See Operations. A request is found by the mark on the record that it claimed. */
export const claimedUnder = ({ supervisor, clock, unsettled }: Pick<ClaimSandboxDeps, 'supervisor' | 'clock' | 'unsettled'>): Operations['claimedUnder'] => (caller, mark) => {
  if (unsettled.has(mark.key)) throw idempotencyInFlight();
  const id = supervisor.index.claimedUnder(mark.key);
  const found = id === undefined ? undefined : supervisor.sandbox(id);
  const claim = found?.context.record?.claim;
  if (!found || !claim || !sameTenant(claim.owner, caller)) return undefined;
  if (claim.mark?.body !== mark.body) throw idempotencyKeyReused();
  return viewOf(found, clock.now());
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

/** Quota before the claim; the instance goes back to the queue when there is none left. */
const takeSeat = async ({ coordination, supervisor, sandboxLimit }: ClaimSandboxDeps, owner: Tenant, id: InstanceId): Promise<void> => {
  let granted = false;
  try {
    granted = await coordination.reserve(owner, 'sandboxes', { name: id, amount: 1, limit: sandboxLimit });
  } finally {
    if (!granted) supervisor.putBack(id);
  }
  if (!granted) throw sandboxQuotaExceeded(sandboxLimit);
};

/** The claimed sandbox; undefined where this instance is lost to us and another may be tried. */
const attempt = async (deps: ClaimSandboxDeps, id: InstanceId, claim: Claim, until: number): Promise<SandboxView | undefined> => {
  const { supervisor, coordination, clock } = deps;
  supervisor.send(id, { type: 'CLAIM', claim, now: clock.now(), until });
  const end = await supervisor.until(id, (snapshot) => snapshot?.state !== 'claiming', until);
  if (end?.state === 'claiming') {
    deps.background('settle claim', settleSeat(deps, id, claim));
    throw unavailable('the claim could not be settled in time; list your sandboxes before trying again');
  }
  const ours = sameClaim(end?.context.record?.claim, claim);
  // Being retired because the claim's outcome stayed unknown: until the record is gone it may have landed.
  if (end?.state === 'stopping' && end.context.record && !end.context.record.claim) {
    deps.background('settle claim', settleSeat(deps, id, claim));
    if (claim.mark && isKeyed(claim.mark)) throw unavailable('the claim could not be settled; repeat the request');
    return undefined;
  }
  if (end?.state === 'running' && ours) return viewOf(end, clock.now());
  // One that was ours and died at once gives its seat back when its record is closed.
  if (!ours) await coordination.withdraw(claim.owner, 'sandboxes', id);
  return undefined;
};

/** A claim of unknown outcome keeps its seat until the record tells whether it landed. */
const settleSeat = async ({ supervisor, coordination, clock, unsettled }: ClaimSandboxDeps, id: InstanceId, claim: Claim): Promise<void> => {
  if (claim.mark) unsettled.add(claim.mark.key);
  const end = await supervisor.until(id, (snapshot) => snapshot === undefined || snapshot.state === 'running', clock.now() + SETTLE_MS);
  if (claim.mark) unsettled.delete(claim.mark.key);
  if (!sameClaim(end?.context.record?.claim, claim)) await coordination.withdraw(claim.owner, 'sandboxes', id);
};
