import type { PoolContext, PoolEvent, PoolIntent } from '../../machines/pool/events.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { amountsOfPool, SIZED_RESOURCES } from '../../model/pools/quota.ts';
import type { Tenant } from '../../model/tenant.ts';
import { launchOrderOf } from '../sandbox/launch-order.ts';
import type { RecordMirror } from '../runtime/record-mirror.ts';
import type { PoolHostDeps } from './pool-host-deps.ts';
import { PoolRetirements } from './pool-retirements.ts';
import type { StartPlaces } from './start-places.ts';

export interface PoolEffectsDeps extends Pick<
  PoolHostDeps,
  'pools' | 'runtime' | 'planAt' | 'instances'
> {
  readonly places: StartPlaces | undefined;
  readonly mirror: RecordMirror<PoolRecord>;
  readonly contextOf: (uid: string) => PoolContext | undefined;
  readonly send: (uid: string, event: PoolEvent) => void;
}

export const poolEffects = (
  deps: PoolEffectsDeps,
): ((uid: string, intent: PoolIntent) => void | Promise<void>) => {
  const { mirror } = deps;
  const retirements = new PoolRetirements(deps);
  const change = async (
    uid: string,
    changed: (record: PoolRecord) => PoolRecord,
  ): Promise<void> => {
    await mirror.change(uid, changed);
  };
  return (uid, intent) => {
    switch (intent.type) {
      case 'launch':
        return launch(deps, uid, intent.count);
      case 'await-place':
        return awaitPlace(deps, uid);
      case 'trim':
        return retirements.trim(uid);
      case 'renew':
        return retirements.renew(uid);
      case 'end-running':
        return retirements.endRunning(uid);
      case 'replace':
        return retirements.replace(uid);
      case 'save-breaker':
        return change(uid, (record) =>
          record.updateRevision === intent.revision
            ? { ...record, breaker: intent.breaker }
            : record,
        );
      case 'save-conditions':
        return change(uid, (record) => ({ ...record, conditions: intent.conditions }));
      case 'remove':
        return mirror.runExclusive(uid, () => remove(deps, uid));
    }
  };
};

const launch = (
  { contextOf, runtime, instances }: PoolEffectsDeps,
  uid: string,
  count: number,
): void => {
  const record = contextOf(uid)?.record;
  if (!record) return;
  for (let i = 0; i < count; i++) {
    const now = runtime.clock.now();
    instances.launch({ now, launchOrder: launchOrderOf(record, instances.newId(), now) });
  }
};

const awaitPlace = ({ contextOf, places }: PoolEffectsDeps, uid: string): void => {
  const owner = contextOf(uid)?.record.owner;
  if (owner) places?.ask(uid, owner);
};

const remove = async (
  { contextOf, pools, mirror, runtime, send }: PoolEffectsDeps,
  uid: string,
): Promise<void> => {
  const record = contextOf(uid)?.record;
  if (!record) return;
  try {
    await pools.remove(record);
  } catch (error) {
    if (error instanceof RecordConflict)
      await mirror.refresh(`${record.owner.namespace}/${record.name}`);
    send(uid, { type: 'REMOVE_OUTCOME_UNKNOWN', now: runtime.clock.now() });
    if (!(error instanceof RecordConflict)) throw error;
  }
};

/**
 * Releases quota, registry passwords and remaining instances. Only the leader of its shard calls
 * this.
 */
export const forgetPool = (
  {
    coordination,
    runtime,
    pullSecrets,
    reconcileLater,
    listener,
  }: Pick<PoolHostDeps, 'coordination' | 'runtime' | 'pullSecrets' | 'reconcileLater' | 'listener'>,
  { uid, owner, source }: PoolRecord,
): void => {
  runtime.outbox.put({
    name: 'pool release quota',
    lease: undefined,
    act: async () => {
      await coordination.release(owner, 'pools', uid);
      for (const resource of SIZED_RESOURCES) await coordination.release(owner, resource, uid);
    },
  });
  reconcileLater(owner);
  if (source.overrides?.imagePullSecretConfigured)
    runtime.outbox.put({
      name: 'pool forget passwords',
      lease: undefined,
      act: () => pullSecrets?.forget({ namespace: owner.namespace, uid }),
    });
  listener.orphaned(uid);
};

export const restoreQuotas = async (
  { coordination }: Pick<PoolHostDeps, 'coordination'>,
  record: PoolRecord,
): Promise<void> => {
  const { uid, owner }: { uid: string; owner: Tenant } = record;
  const amounts = amountsOfPool(record);
  await Promise.all([
    coordination.restore(owner, 'pools', { name: uid, amount: 1 }),
    ...SIZED_RESOURCES.map((resource) =>
      coordination.restore(owner, resource, { name: uid, amount: amounts[resource] }),
    ),
  ]);
};
