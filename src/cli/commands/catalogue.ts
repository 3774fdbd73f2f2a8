import type { Command } from 'commander';
import type { ServiceAction } from '../common/action.ts';
import { CLUSTER_OPTION, OF_CLUSTER_OPTION, type ClusterOption } from '../common/cluster-option.ts';
import { addConnectionOptions } from '../common/connection.ts';
import { leaf } from '../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';
import { featureTable, instanceTypeTable, statisticsTable, volumeTable } from '../show/rows.ts';

export const instanceTypesLeaf = (action: ServiceAction): Command =>
  asked({
    usage: 'instance-types',
    summary: 'Lists the instance types that pools may name.',
    examples: [
      'sandpool instance-types',
      'sandpool instance-types --cluster west',
      'sandpool pools create big --template default --instance-type small --multiplier 2',
    ],
  })
    .option(...OF_CLUSTER_OPTION)
    .action(
      action(async ({ api, context }, _operands, options: OutputOptions & ClusterOption) => {
        const list = await api.call('listInstanceTypes', {
          query: { clusterID: options.cluster },
        });
        await show(context, options, {
          value: list,
          text: (wide) => instanceTypeTable(list.items, wide),
        });
      }),
    );

export const volumesLeaf = (action: ServiceAction): Command =>
  asked({
    usage: 'volumes',
    summary: 'Lists the volumes that your sandboxes may mount.',
    examples: ['sandpool volumes', 'sandpool volumes -o wide', 'sandpool volumes --cluster west'],
  })
    .option(...OF_CLUSTER_OPTION)
    .action(
      action(async ({ api, context }, _operands, options: OutputOptions & ClusterOption) => {
        const list = await api.call('listVolumes', {
          query: { clusterID: options.cluster },
        });
        await show(context, options, {
          value: list,
          text: (wide) => volumeTable(list.items, wide),
        });
      }),
    );

export const featuresLeaf = (action: ServiceAction): Command =>
  asked({
    usage: 'features',
    summary: 'Shows which optional features this deployment has.',
    examples: ['sandpool features', 'sandpool features -o json'],
  }).action(
    action(async ({ api, context }, _operands, options: OutputOptions) => {
      const gates = await api.call('getFeatureGates');
      await show(context, options, { value: gates, text: () => featureTable(gates) });
    }),
  );

export const statsLeaf = (action: ServiceAction): Command =>
  asked({
    usage: 'stats',
    summary: 'Counts all tenants’ sandboxes, for an admin. A manager counts those of all clusters.',
    examples: [
      'sandpool stats --admin',
      'sandpool stats --cluster west --admin',
      'sandpool stats --admin -o json',
    ],
  })
    .option(...CLUSTER_OPTION)
    .action(
      action(async ({ api, context }, _operands, options: OutputOptions & ClusterOption) => {
        const { statistics, ...rest } = await api.call('getSandboxStatistics', {
          query: { clusterID: options.cluster },
        });
        await show(context, options, {
          value: { ...statistics, ...rest },
          text: () => statisticsTable({ ...statistics, ...rest }),
        });
      }),
    );

const asked = (options: Parameters<typeof leaf>[0]): Command =>
  addOutputOption(addConnectionOptions(leaf(options)));
