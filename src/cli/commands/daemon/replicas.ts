import type { Command } from 'commander';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import { ApiError } from '../../client/api-error.ts';
import type { QueuesReport } from '../../client/wire.ts';
import type { ServiceAction } from '../../common/action.ts';
import { addConnectionOptions } from '../../common/connection.ts';
import { leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { table } from '../../show/table.ts';

export interface Replica {
  readonly name: string;
  readonly queues?: QueuesReport;
}

export const replicasLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'replicas',
        summary:
          'Lists the replicas with the shards that each leads and the epoch of each lease, for ' +
          'an admin.',
        examples: ['sandpool replicas --admin', 'sandpool replicas --admin -o wide'],
      }),
    ),
  ).action(
    action(async ({ api, context }, _, options: OutputOptions) => {
      const replicas = await replicasOf(api);
      await show(context, options, {
        value: { items: replicas, total: replicas.length },
        text: (wide) => replicaTable(replicas, wide),
      });
    }),
  );

export const replicasOf = async (api: SandpoolClient): Promise<readonly Replica[]> => {
  const { replicas } = await api.call('getShards');
  return await Promise.all(
    replicas.map(async (name) => {
      try {
        return { name, queues: await api.call('getQueues', { query: { replica: name } }) };
      } catch (error) {
        if (error instanceof ApiError && (error.status === 503 || error.status === 400))
          return { name }; // the replica did not answer, or has gone
        throw error;
      }
    }),
  );
};

const replicaTable = (replicas: readonly Replica[], wide: boolean): string =>
  table(
    ['REPLICA', 'SANDBOXES', 'UNDER WAY', 'WAITING', wide ? 'SHARD:EPOCH' : 'SHARDS'],
    replicas.map(({ name, queues }) =>
      queues
        ? [
            name,
            String(queues.actors.sandboxes),
            String(underWay(queues)),
            String(queues.claimsWaiting),
            queues.shards
              .map(({ shard, epoch }) => (wide ? `${shard}:${epoch}` : String(shard)))
              .join(' ') || '-',
          ]
        : [name, '-', '-', '-', 'it does not answer'],
    ),
  );

/** Effects of state machines, queued or in progress. */
export const underWay = ({ outboxes }: QueuesReport): number =>
  Object.values(outboxes).reduce(
    (sum, { queued, running }) =>
      sum + queued + Object.values(running).reduce((each, { count }) => each + count, 0),
    0,
  );
