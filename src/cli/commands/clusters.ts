import type { Command } from 'commander';
import type { Actions } from '../common/action.ts';
import { addConnectionOptions, dataDirOf } from '../common/connection.ts';
import { print } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { commandDaemon } from '../common/control.ts';
import { group, leaf } from '../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';
import { clusterFields, clusterTable } from '../show/cluster-rows.ts';

export const clustersGroup = ({ action, serviceAction }: Actions): Command =>
  group('clusters', 'Lists the clusters, lets clusters join, and removes them', [
    getLeaf(serviceAction),
    joinTokenLeaf(action),
    removeLeaf(action),
  ]).addCommand(listLeaf(serviceAction), { isDefault: true });

const listLeaf = (action: Actions['serviceAction']): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'list',
        summary:
          'Lists the clusters: whether each is connected, its number of links, and the time of a ' +
          "heartbeat, as seen by the manager's replica that answers.",
        examples: ['sandpool clusters', 'sandpool clusters list -o wide'],
      }),
    ),
  ).action(
    action(async ({ api, context }, _operands, options: OutputOptions) => {
      const list = await api.call('listClusters');
      await show(context, options, { value: list, text: (wide) => clusterTable(list.items, wide) });
    }),
  );

const getLeaf = (action: Actions['serviceAction']): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'get <clusterID>',
        summary: 'Shows one cluster, and the links over which the manager reaches it.',
        examples: ['sandpool clusters get west', 'sandpool clusters get west -o json'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [clusterID], options: OutputOptions) => {
      const { items } = await api.call('listClusters');
      const cluster = items.find((each) => each.clusterID === clusterID);
      if (!cluster)
        throw new CliFailure(`there is no cluster ${String(clusterID)}`, [
          'list the clusters: sandpool clusters',
        ]);
      await show(context, options, { value: cluster, text: () => clusterFields(cluster) });
    }),
  );

const joinTokenLeaf = (action: Actions['action']): Command =>
  leaf({
    usage: 'join-token <clusterID>',
    summary:
      'Prints a token with which a cluster joins the running local manager. The token is ' +
      'valid once, for one hour. A new token replaces the previous token.',
    examples: ['sandpool clusters join-token west > join.token'],
  })
    .option('--data-dir <dir>', 'data folder of the manager [SANDPOOL_DATA_DIR]')
    .action(
      action(1, async (context, [clusterID], options: { readonly dataDir?: string }) => {
        const dataDir = await dataDirOf(options, context.env);
        const { token } = await commandDaemon(dataDir, '/clusters/join-token', { clusterID });
        await print(context.stdout, `${String(token)}\n`);
        return 0;
      }),
    );

const removeLeaf = (action: Actions['action']): Command =>
  leaf({
    usage: 'remove <clusterID>',
    summary:
      'Removes a cluster from the running local manager. The manager cuts its link, and the ' +
      "cluster no longer accepts the manager's promoted keys. The cluster continues on its " +
      'own, and can join again with a new token.',
    examples: ['sandpool clusters remove west'],
  })
    .option('--data-dir <dir>', 'data folder of the manager [SANDPOOL_DATA_DIR]')
    .action(
      action(1, async (context, [clusterID], options: { readonly dataDir?: string }) => {
        const dataDir = await dataDirOf(options, context.env);
        await commandDaemon(dataDir, '/clusters/remove', { clusterID });
        await print(context.stdout, `${String(clusterID)} was removed\n`);
        return 0;
      }),
    );
