import type { InstanceId } from '../../model/identifiers.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { updateRevisionOf } from '../../model/pools/update-revision.ts';
import { withImage } from '../../model/pools/with-image.ts';
import type { LaunchOrder, InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';

/** Makes what a new instance of the pool is born from, as the pool stands. */
export const launchOrderOf = (
  { uid, name, owner, env, updateRevision, definition, labels, annotations }: PoolRecord,
  id: InstanceId,
  now: number,
): LaunchOrder => ({
  // Whatever the record says: its own pool's passwords, or those of the env whose member the pool
  // is.
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

/**
 * Makes what an instance of the pool is born from that has another image, and is launched for one
 * claim: see `InstanceRecord.claimBy`.
 */
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

/** None where they are not published. */
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
