import type { Command } from 'commander';
import type { QuotaList } from '../client/wire.ts';
import { HIGHEST_LIMIT } from '../../model/pools/quota.ts';
import type { ServiceAction } from '../common/action.ts';
import { wholeNumber } from '../common/arguments.ts';
import { CLUSTER_OPTION, type ClusterOption } from '../common/cluster-option.ts';
import { addConnectionOptions } from '../common/connection.ts';
import type { CliContext } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { omitUndefined } from '../../lib/plain-data.ts';
import { group, leaf } from '../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';
import { quotaTable } from '../show/rows.ts';

export const quotasGroup = (action: ServiceAction): Command =>
  group('quotas', 'Shows and sets the quotas of a user', [])
    .addCommand(getLeaf(action), { isDefault: true })
    .addCommand(setLeaf(action));

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'get [team] [user]',
        summary:
          'Shows your quotas and usage, or for an admin those of any user. A manager shows the ' +
          'sums over all clusters.',
        examples: ['sandpool quotas', 'sandpool quotas get blue ada --admin'],
      }),
    ),
  )
    .option(...CLUSTER_OPTION)
    .action(
      action(async ({ api, context }, [team, user], options: OutputOptions & ClusterOption) => {
        const query = { clusterID: options.cluster };
        if (team === undefined)
          return await showQuotas(context, options, await api.call('getQuotas', { query }));
        if (user === undefined)
          throw new CliFailure('a user needs both a team and a name', [
            'name both: sandpool quotas get TEAM USER --admin',
          ]);
        await showQuotas(
          context,
          options,
          await api.call('getQuotasOf', {
            params: { team: team as string, user: user as string },
            query,
          }),
        );
      }),
    );

interface SetOptions extends OutputOptions, ClusterOption {
  readonly sandboxes?: number;
  readonly pools?: number;
  readonly replicas?: number;
  readonly cpu?: string;
  readonly memory?: string;
}

const setLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'set <team> <user>',
        summary:
          'Sets the quotas of a user, for an admin. Options that you omit stay unchanged. ' +
          'Lowering a quota ends nothing.',
        examples: [
          'sandpool quotas set blue ada --sandboxes 20 --admin',
          'sandpool quotas set blue ada --pools 5 --replicas 100 --admin',
          'sandpool quotas set blue ada --cpu 16 --memory 64Gi --admin',
          'sandpool quotas set blue ada --sandboxes 20 --cluster west --admin',
        ],
      }),
    ),
  )
    .option(
      '--sandboxes <n>',
      'maximum number of claimed sandboxes',
      wholeNumber(0, HIGHEST_LIMIT.sandboxes),
    )
    .option('--pools <n>', 'maximum number of pools', wholeNumber(0, HIGHEST_LIMIT.pools))
    .option(
      '--replicas <n>',
      'maximum number of replicas, over all pools',
      wholeNumber(0, HIGHEST_LIMIT.replicas),
    )
    .option(
      '--cpu <quantity>',
      "cores of all instances in the user's pools, such as 16; none for the configured limit",
    )
    .option(
      '--memory <quantity>',
      'memory for these instances, such as 64Gi; none for the configured limit',
    )
    .option(
      '--cluster <clusterID>',
      'on this cluster of a fleet; by default the cluster that answers',
    )
    .action(
      action(async ({ api, context }, [team, user], options: SetOptions) => {
        const { sandboxes, pools, replicas, cpu, memory } = options;
        const change = omitUndefined({ sandboxes, pools, replicas, cpu, memory });
        if (Object.keys(change).length === 0)
          throw new CliFailure('there is nothing to set', [
            'name at least one of --sandboxes, --pools, --replicas, --cpu and --memory',
          ]);
        await showQuotas(
          context,
          options,
          await api.call('setQuotasOf', {
            params: { team: team as string, user: user as string },
            query: { clusterID: options.cluster },
            body: change,
          }),
        );
      }),
    );

const showQuotas = (
  context: CliContext,
  options: OutputOptions,
  quotas: QuotaList,
): Promise<void> =>
  show(context, options, { value: quotas, text: (wide) => quotaTable(quotas.items, wide) });
