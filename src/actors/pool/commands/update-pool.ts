import { isSameData } from '../../../lib/plain-data.ts';
import type { EnvMirror } from '../../runtime/record-mirror.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { PullSecretOwner, PullSecrets } from '../../../contracts/pull-secrets.ts';
import { LeaseLost, RecordConflict } from '../../../contracts/sandbox-driver.ts';
import { requireMatch } from '../../../model/if-match.ts';
import { wordRevisionOfPool, type PoolRecord } from '../../../model/pools/pool.ts';
import { withoutFields } from '../../../model/pools/unset-fields.ts';
import { mergedSource, type PoolSource } from '../../../model/pools/pool-source.ts';
import { poolBeingDeleted, poolNotFound, poolOfEnv, unavailable } from '../../../model/refusals.ts';
import { withRendered } from '../../../model/pools/render-pool.ts';
import { accessField } from '../../../model/tenant.ts';
import { findPool, poolViewOf } from './find-pool.ts';
import type { PoolChange, PoolOperations } from './pool-operations.ts';
import { renderSource, type PoolRenderingDeps } from './pool-rendering.ts';
import { scaleOf } from './pool-scale.ts';
import { Resizing, type ResizingDeps } from '../../sandbox/commands/reservations.ts';
import type { PoolView } from '../../views.ts';

export interface UpdatePoolDeps extends PoolRenderingDeps, ResizingDeps {
  readonly supervisor: Supervisor;
  readonly pullSecrets: PullSecrets;
  readonly envs: Pick<EnvMirror, 'get' | 'refresh'>;
}

/**
 * Keeps omitted fields (operation `PUT /sandboxpools/{name}`). With `autoUpdate`, new instances use
 * the change when this resolves; otherwise from the next sync.
 */
export const updatePool =
  (deps: UpdatePoolDeps): PoolOperations['updatePool'] =>
  async (caller, name, change) => {
    const { record: before } = await findPool(deps.supervisor, caller, name);
    await requireOwnersWord(deps, before, change);
    return await changePool(deps, before, change);
  };

export const changePool = async (
  deps: UpdatePoolDeps,
  before: PoolRecord,
  change: PoolChange,
): Promise<PoolView> => {
  const { supervisor, pullSecrets } = deps;
  requireMatch(change.ifMatch, wordRevisionOfPool(before));
  if (before.deleting !== false) throw poolBeingDeleted();
  const wanted = await changed(deps, before, change);
  const secretOwner: PullSecretOwner = {
    kind: 'pool',
    namespace: before.owner.namespace,
    name: before.name,
    uid: before.uid,
  };
  let kept = false;
  const keepRegistries = async (): Promise<void> => {
    if (kept || !change.registries || change.registries.length === 0) return;
    await pullSecrets.keep(secretOwner, change.registries);
    kept = true;
  };
  if (wanted === before) {
    await keepRegistries();
    return poolViewOf(supervisor, before);
  }
  const resizing = new Resizing(deps, before);
  try {
    const record = await supervisor.pools.change(
      before.uid,
      async (current) => {
        requireMatch(change.ifMatch, wordRevisionOfPool(current));
        if (current.deleting !== false) throw poolBeingDeleted();
        const next = await changed(deps, current, change);
        await resizing.cover(current, next);
        await keepRegistries(); // last, so that a refusal has no effect
        return next;
      },
      resizing.permitted,
    );
    if (!record) throw poolNotFound(before.name);
    await resizing.landed(record);
    if (forgetsPasswords(change)) await pullSecrets.forget(secretOwner);
    return poolViewOf(supervisor, record);
  } catch (error) {
    await resizing.failed(error);
    throw asUnavailable(error);
  }
};

/**
 * The owner of a member's pool may set only `replicas`, within the member's bounds, and only if no
 * group sizes the pool.
 */
const requireOwnersWord = async (
  { envs }: Pick<UpdatePoolDeps, 'envs'>,
  { env: of, name, owner }: PoolRecord,
  { ifMatch: _anyOf, replicas, ...others }: PoolChange,
): Promise<void> => {
  if (!of) return;
  await envs.refresh(`${owner.namespace}/${of.name}`);
  const env = envs.get(of.uid);
  const member = env?.members.find((each) => each.name === name);
  const sized = env?.groups.some(
    (group) => group.name === member?.config.scalingGroup && group.enabled,
  );
  if (Object.keys(others).length > 0 || (replicas !== undefined && sized === true))
    throw poolOfEnv(of.name, name);
  if (replicas !== undefined && member) scaleOf({ ...member.config, replicas });
};

export const asUnavailable = (error: unknown): unknown =>
  error instanceof RecordConflict || error instanceof LeaseLost
    ? unavailable(
        error instanceof LeaseLost
          ? 'the pool could not be written in time; try again'
          : 'the pool was changed by another request; try again',
      )
    : error;

const changed = async (
  deps: UpdatePoolDeps,
  current: PoolRecord,
  change: PoolChange,
): Promise<PoolRecord> => {
  const before = withoutFields(current, change.unset ?? []);
  const {
    minReplicas = before.minReplicas,
    maxReplicas = before.maxReplicas,
    replicas = before.replicas,
  } = change;
  scaleOf({ replicas: change.replicas ?? before.requested ?? replicas, minReplicas, maxReplicas });
  const { requested, access, ...rest } = before;
  const record: PoolRecord = {
    ...rest,
    ...accessField(change.access ?? access),
    ...(change.replicas === undefined && requested !== undefined ? { requested } : {}),
    replicas,
    labels: change.labels ?? before.labels,
    annotations: change.annotations ?? before.annotations,
    ...(minReplicas === undefined ? {} : { minReplicas }),
    ...(maxReplicas === undefined ? {} : { maxReplicas }),
    updateStrategy: { ...before.updateStrategy, ...change.updateStrategy },
    ...(before.decided && replicas !== before.replicas
      ? { decided: { id: before.decided.id } }
      : {}),
  };
  const source = mergedSource(before.source, askedFor(change));
  const result = await withSource(deps, { ...record, source: current.source }, source);
  return isSameData(result, current) ? current : result;
};

const askedFor = ({ source = {}, registries }: PoolChange): PoolSource =>
  registries
    ? {
        ...source,
        overrides: { ...source.overrides, imagePullSecretConfigured: registries.length > 0 },
      }
    : source;

const forgetsPasswords = ({ unset = [], registries }: PoolChange): boolean =>
  registries === undefined
    ? unset.includes('overrides') || unset.includes('overrides.imagePullSecret')
    : registries.length === 0;

/** Refuses a source that can't be rendered, even if it applies only later. */
const withSource = async (
  deps: UpdatePoolDeps,
  record: PoolRecord,
  source: PoolSource,
): Promise<PoolRecord> => {
  const isNew = !isSameData(source, record.source);
  const { autoUpdate } = record.updateStrategy;
  if (!isNew && !(autoUpdate && record.unrendered)) return record;
  const rendered = await renderSource(deps, source, record.owner.namespace);
  return autoUpdate
    ? withRendered(record, source, rendered)
    : { ...record, source, unrendered: true };
};
