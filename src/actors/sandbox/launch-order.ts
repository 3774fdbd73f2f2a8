import type { InstanceId } from '../../model/identifiers.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { updateRevisionOf } from '../../model/pools/update-revision.ts';
import { withImage } from '../../model/pools/with-image.ts';
import type { LaunchOrder, InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';

export const launchOrderOf = (
  { uid, name, owner, env, updateRevision, definition, labels, annotations }: PoolRecord,
  id: InstanceId,
  now: number,
): LaunchOrder => ({
  // The record's value does not count: the passwords are those of the pool, or of the env that the
  // pool is a member of.
  definition: definition.imagePullSecret
    ? { ...definition, imagePullSecret: env?.uid ?? true }
    : definition,
  labels: Object.keys(labels).length > 0 ? labels : undefined,
  annotations: Object.keys(annotations).length > 0 ? annotations : undefined,
  record: {
    id,
    poolUid: uid,
    poolName: name,
    poolOwner: owner,
    createdAt: now,
    updateRevision,
    cpu: definition.cpu,
    memory: definition.memory,
    containerImages: Object.fromEntries(
      definition.containers.map((container) => [container.name, container.image]),
    ),
    startupTimeoutMs: definition.startupTimeoutMs,
    onHost: definition.network === 'host' ? true : undefined,
    ...endpointsOf(definition),
  },
});

export const orderWithImage = (
  pool: PoolRecord,
  id: InstanceId,
  {
    image,
    now,
    claimBy,
  }: { readonly image: string; readonly now: number; readonly claimBy: number },
): LaunchOrder => {
  const definition = withImage(pool.definition, image);
  const updateRevision = updateRevisionOf(definition);
  const order = launchOrderOf({ ...pool, definition, updateRevision }, id, now);
  return { ...order, record: { ...order.record, claimBy } };
};

const endpointsOf = ({
  endpoints,
  network,
  unpublished,
}: InstanceDefinition): Pick<InstanceRecord, 'endpoints'> =>
  endpoints && !unpublished
    ? {
        endpoints: Object.fromEntries(
          Object.entries(endpoints).map(([name, { port, scheme }]) => [
            name,
            { port, scheme, onHost: network === 'host' },
          ]),
        ),
      }
    : {};
