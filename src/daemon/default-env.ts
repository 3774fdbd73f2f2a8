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

/** E2B's code-interpreter SDKs create their sandboxes from this name. */
const INTERPRETER = 'code-interpreter-v1';

const interpreterPool = ({ interpreterPool: { maxReplicas } }: FirstPools): FirstPool => ({
  name: INTERPRETER,
  template: INTERPRETER,
  replicas: 0,
  maxReplicas,
});

/** The members that the first start makes; a pool that must not grow is not a member. */
export const firstMembers = (config: FirstPools): readonly FirstMember[] => {
  const namespace = namespaceOf(config.namespacePattern, 'default');
  const owner = { namespace, team: 'default', user: 'default' };
  return [config.defaultPool, interpreterPool(config)]
    .filter(({ replicas, maxReplicas }) => maxReplicas > replicas)
    .map(({ name, replicas, maxReplicas }) => ({ owner, name, replicas, maxReplicas }));
};

/**
 * Makes what the first start gives the tenant key: the default pool, and the pool of the code
 * interpreter if it may grow, its template is there, and the quota has room for a second pool.
 */
export const makeDefaultEnvs = async (deps: DefaultEnvsDeps): Promise<void> => {
  const { config, hasTemplate } = deps;
  await makeFirstPool(deps, config.defaultPool);
  const interpreter = interpreterPool(config);
  if (interpreter.maxReplicas > 0 && config.quotas.pools > 1 && hasTemplate(INTERPRETER))
    await makeFirstPool(deps, interpreter);
};

/**
 * Makes an env with one member of its name, whose group grows it with demand and brings it back; or
 * the pool alone, where it must not grow. A pool of that name is left as it is, and what an
 * earlier, interrupted first start began is finished.
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
