import { isDeepStrictEqual } from 'node:util';
import type { EnvMirror } from '../actors/env-mirror.ts';
import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination } from '../contracts/coordination.ts';
import type { PullSecretOwner, PullSecrets } from '../contracts/pull-secrets.ts';
import { OutcomeUnknown, RecordConflict } from '../contracts/sandbox-driver.ts';
import { requireMatch } from '../model/if-match.ts';
import type { PoolRecord } from '../model/pool.ts';
import { mergedSource, type PoolSource } from '../model/pool-source.ts';
import { poolBeingDeleted, poolNotFound, poolOfEnv, poolQuotaExceeded, unavailable } from '../model/refusals.ts';
import { withRendered } from '../model/render-pool.ts';
import { findPool, poolViewOf } from './find-pool.ts';
import type { Operations, PoolChange } from './operations.ts';
import { renderSource, type PoolRenderingDeps } from './pool-rendering.ts';
import { scaleOf } from './pool-scale.ts';
import type { QuotaLimits } from './quota-limits.ts';
import { requireReserved } from './reservations.ts';
import type { PoolView } from './views.ts';

export interface UpdatePoolDeps extends PoolRenderingDeps {
  readonly supervisor: Supervisor;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
  readonly pullSecrets: PullSecrets;
  readonly envs: Pick<EnvMirror, 'get' | 'freshen'>;
}

/**
 * Changes a pool of the caller's; what is not named stays, and an empty change changes nothing (operation
 * `PUT /sandboxpools/{name}`). With `autoUpdate` what it asks for is what new instances are started from when this
 * resolves; else from the next sync on.
 */
export const updatePool = (deps: UpdatePoolDeps): Operations['updatePool'] => async (caller, name, change) => {
  const { record: before } = await findPool(deps.supervisor, caller, name);
  await requireOwnersWord(deps, before, change);
  return await changePool(deps, before, change);
};

/** The same, whoever asks. */
export const changePool = async (deps: UpdatePoolDeps, before: PoolRecord, change: PoolChange): Promise<PoolView> => {
  const { supervisor, coordination, clock, pullSecrets } = deps;
  requireMatch(change.ifMatch, before.revision);
  if (before.deleting !== false) throw poolBeingDeleted();
  const wanted = await changed(deps, before, change);
  const secretOwner: PullSecretOwner = { kind: 'pool', namespace: before.owner.namespace, name: before.name, uid: before.uid };
  const keepRegistries = async (): Promise<void> => {
    if (change.registries && change.registries.length > 0) await pullSecrets.keep(secretOwner, change.registries);
  };
  if (wanted === before) {
    await keepRegistries();
    return poolViewOf(supervisor, before);
  }
  const { replicas } = wanted;
  const scaled = replicas !== before.replicas;
  const limit = replicas < before.replicas ? Number.POSITIVE_INFINITY : deps.quotaLimits.of(before.owner).replicas; // giving back is never refused
  const since = clock.now();
  if (scaled && !await coordination.reserve(before.owner, 'replicas', { name: before.uid, amount: replicas, limit })) throw poolQuotaExceeded();
  try {
    const record = await supervisor.pools.change(before.uid, async (current) => {
      requireMatch(change.ifMatch, current.revision);
      if (current.deleting !== false) throw poolBeingDeleted();
      if (scaled) await requireReserved(deps, { tenant: before.owner, name: before.uid, resources: ['replicas'], since });
      const next = await changed(deps, current, change);
      await keepRegistries(); // last, so that a change that is refused has no effect
      return next;
    });
    if (!record) throw poolNotFound();
    if (change.registries?.length === 0) await pullSecrets.forget(secretOwner);
    return poolViewOf(supervisor, record);
  } catch (error) {
    if (scaled) await reserveAgain(deps, before, error instanceof OutcomeUnknown ? replicas : 0).catch(() => undefined);
    throw asUnavailable(error);
  }
};

/** Of a member's pool only `replicas` are its owner's to say, while nothing else sizes it, and within the member's bounds. */
const requireOwnersWord = async ({ envs }: Pick<UpdatePoolDeps, 'envs'>, { env: of, name, owner }: PoolRecord, { ifMatch: _anyOf, replicas, ...others }: PoolChange): Promise<void> => {
  if (!of) return;
  await envs.freshen(owner.namespace, of.name);
  const env = envs.get(of.uid);
  const member = env?.members.find((each) => each.name === name);
  const sized = env?.groups.some((group) => group.name === member?.config.scalingGroup && group.enabled);
  if (Object.keys(others).length > 0 || (replicas !== undefined && sized === true)) throw poolOfEnv(of.name);
  if (replicas !== undefined && member) scaleOf({ ...member.config, replicas });
};

/** The pool was changed, or its deletion finished, between reading and writing. */
export const asUnavailable = (error: unknown): unknown =>
  (error instanceof RecordConflict ? unavailable('the pool changed meanwhile; try again') : error);

/** The record as it is to be; the very same where nothing changes. */
const changed = async (deps: UpdatePoolDeps, before: PoolRecord, change: PoolChange): Promise<PoolRecord> => {
  const { minReplicas = before.minReplicas, maxReplicas = before.maxReplicas, replicas = before.replicas } = change;
  scaleOf({ replicas, ...(minReplicas === undefined ? {} : { minReplicas }), ...(maxReplicas === undefined ? {} : { maxReplicas }) });
  const record: PoolRecord = {
    ...before, replicas, labels: change.labels ?? before.labels, annotations: change.annotations ?? before.annotations,
    ...(minReplicas === undefined ? {} : { minReplicas }), ...(maxReplicas === undefined ? {} : { maxReplicas }),
    updateStrategy: { ...before.updateStrategy, ...change.updateStrategy },
    ...(before.decided && replicas !== before.replicas ? { decided: { id: before.decided.id } } : {}),
  };
  const result = await withSource(deps, record, mergedSource(before.source, askedFor(change)));
  return isDeepStrictEqual(result, before) ? before : result;
};

const askedFor = ({ source = {}, registries }: PoolChange): PoolSource =>
  (registries ? { ...source, overrides: { ...source.overrides, imagePullSecretConfigured: registries.length > 0 } } : source);

/** What can't be rendered is refused also where it is not yet to be. */
const withSource = async (deps: UpdatePoolDeps, record: PoolRecord, source: PoolSource): Promise<PoolRecord> => {
  const isNew = !isDeepStrictEqual(source, record.source);
  const { autoUpdate } = record.updateStrategy;
  if (!isNew && !(autoUpdate && record.unrendered)) return record;
  const rendered = await renderSource(deps, source, record.owner.namespace);
  return autoUpdate ? withRendered(record, source, rendered) : { ...record, source, unrendered: true };
};

interface ReserveAgainDeps { readonly supervisor: Pick<Supervisor, 'pools'>; readonly coordination: Pick<Coordination, 'reserve' | 'release'> }

/** As many as the pool stands with; as the change asked for where that may have landed, and is settled later. */
export const reserveAgain = async ({ supervisor, coordination }: ReserveAgainDeps, { uid, owner }: PoolRecord, atLeast: number): Promise<void> => {
  const standing = supervisor.pools.get(uid)?.record.replicas;
  if (standing === undefined) await coordination.release(owner, 'replicas', uid);
  else await coordination.reserve(owner, 'replicas', { name: uid, amount: Math.max(standing, atLeast), limit: Number.POSITIVE_INFINITY });
};
