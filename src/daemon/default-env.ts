import type { OwnedIndex } from '../actors/runtime/owned-index.ts';
import type { Config } from '../config/config.ts';
import type { Caller } from '../model/tenant.ts';
import { namespaceOf } from './namespaces.ts';
import type { FirstMember } from '../operations/envs/env-members.ts';
import type { Operations } from '../operations/operations.ts';

interface DefaultEnvDeps {
  readonly config: Pick<Config, 'defaultPool' | 'namespacePattern'>;
  readonly pools: Pick<OwnedIndex, 'uidOf'>;
  readonly operations: Pick<
    Operations,
    'createPool' | 'createEnv' | 'addMember' | 'updateGroup' | 'listEnvs'
  >;
}

/** The member that the first start makes; undefined if it makes a pool alone. */
export const firstMember = ({
  defaultPool: { name, replicas, maxReplicas },
  namespacePattern,
}: DefaultEnvDeps['config']): FirstMember | undefined => {
  const owner = {
    namespace: namespaceOf(namespacePattern, 'default'),
    team: 'default',
    user: 'default',
  };
  return maxReplicas <= replicas ? undefined : { owner, name, replicas, maxReplicas };
};

/**
 * Makes what the first start gives the tenant key: an env with one member of its name, whose group
 * grows it with demand and brings it back; or the pool alone, where it must not grow. A pool of
 * that name is left as it is, and what an earlier, interrupted first start began is finished.
 */
export const makeDefaultEnv = async ({
  config: { defaultPool, namespacePattern },
  pools,
  operations,
}: DefaultEnvDeps): Promise<void> => {
  const { name, replicas, maxReplicas, template } = defaultPool;
  const caller: Caller = {
    namespace: namespaceOf(namespacePattern, 'default'),
    team: 'default',
    user: 'default',
    role: 'user',
    keyId: 'first-start',
  };
  const exists = pools.uidOf(caller.namespace, name) !== undefined;
  if (maxReplicas <= replicas) {
    if (!exists)
      await operations.createPool(caller, {
        name,
        replicas,
        source: { templateName: template },
        labels: {},
        annotations: {},
      });
    return;
  }
  const { items } = await operations.listEnvs(caller, { all: false }, { limit: 1, offset: 0 });
  const begun = items.find(({ record }) => record.name === name)?.record;
  if (exists && !begun) return;
  if (!begun)
    await operations.createEnv(caller, {
      name,
      mode: 'WarmPool',
      templateRef: { name: template },
      overrides: {},
      labels: {},
      annotations: {},
    });
  if (!exists && !begun?.members.some((member) => member.name === name))
    await operations.addMember(caller, name, {
      name,
      replicas,
      config: { minReplicas: replicas, maxReplicas },
    });
  await operations.updateGroup(caller, name, name, { scaleUpPolicy: { mode: 'Moderate' } });
};
