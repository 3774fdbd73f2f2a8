import type { OwnedIndex } from '../actors/runtime/record-mirror.ts';
import type { Config } from './config/config.ts';
import type { Caller } from '../model/tenant.ts';
import { namespaceOf } from './assembly/namespaces.ts';
import type { FirstMember } from '../actors/env/commands/env-members.ts';
import type { Operations } from '../services/operations.ts';

type FirstPools = Pick<Config, 'defaultPool' | 'interpreterPool' | 'namespacePattern'>;
type FirstPool = FirstPools['defaultPool'];

interface DefaultEnvsDeps {
  readonly config: FirstPools & { readonly quotas: Pick<Config['quotas'], 'pools'> };
  readonly pools: Pick<OwnedIndex, 'uidOf'>;
  readonly hasTemplate: (name: string) => boolean;
  readonly operations: Pick<
    Operations,
    'createPool' | 'createEnv' | 'addMember' | 'updateGroup' | 'listEnvs'
  >;
}

/** E2B's code-interpreter SDKs use this name. */
const INTERPRETER = 'code-interpreter-v1';

const interpreterPool = ({ interpreterPool: { maxReplicas } }: FirstPools): FirstPool => ({
  name: INTERPRETER,
  template: INTERPRETER,
  replicas: 0,
  maxReplicas,
});

/** A pool that must not grow gets no member. */
export const firstMembers = (config: FirstPools): readonly FirstMember[] => {
  const namespace = namespaceOf(config.namespacePattern, 'default');
  const owner = { namespace, team: 'default', user: 'default' };
  return [config.defaultPool, interpreterPool(config)]
    .filter(({ replicas, maxReplicas }) => maxReplicas > replicas)
    .map(({ name, replicas, maxReplicas }) => ({ owner, name, replicas, maxReplicas }));
};

/**
 * The default pool and the code interpreter's. Skips the latter if it must not grow, its template
 * is missing, or the quota only permits one pool.
 */
export const makeDefaultEnvs = async (deps: DefaultEnvsDeps): Promise<void> => {
  const { config, hasTemplate } = deps;
  await makeFirstPool(deps, config.defaultPool);
  const interpreter = interpreterPool(config);
  if (interpreter.maxReplicas > 0 && config.quotas.pools > 1 && hasTemplate(INTERPRETER))
    await makeFirstPool(deps, interpreter);
};

/**
 * An env with one member of the same name, or only the pool if it must not grow. Leaves an existing
 * pool unchanged, and completes an interrupted first start.
 */
const makeFirstPool = async (
  { config: { namespacePattern }, pools, operations }: DefaultEnvsDeps,
  { name, replicas, maxReplicas, template }: FirstPool,
): Promise<void> => {
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
  const { items } = await operations.listEnvs(caller, { all: false }, { limit: 2, offset: 0 });
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
  await operations.updateGroup(
    caller,
    { env: name, group: name },
    { scaleUpPolicy: { mode: 'Moderate' } },
  );
};
