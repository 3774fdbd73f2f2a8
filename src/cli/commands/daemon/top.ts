import type { Command } from 'commander';
import type { Query } from '../../client/operation-request.ts';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import type { Pool } from '../../client/wire.ts';
import type { ServiceAction } from '../../common/action.ts';
import { wholeNumber } from '../../common/arguments.ts';
import { addConnectionOptions } from '../../common/connection.ts';
import { print } from '../../common/context.ts';
import { pluralize } from '../../show/pluralize.ts';
import { leaf } from '../../common/leaf.ts';
import { lasting } from '../../common/retrying.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { table } from '../../show/table.ts';
import { type Replica, replicasOf, underWay } from './replicas.ts';

interface TopOptions extends OutputOptions {
  readonly broken?: boolean;
  readonly limit: number;
}

interface Page {
  readonly pools: readonly Pool[];
  readonly total: number;
  readonly replicas: readonly Replica[];
  /** Only pools that cannot start instances. */
  readonly broken?: boolean;
}

const MOST_POOLS = 1_000;
const SHOWN_POOLS = 20;
const AGAIN_MS = 1_000;
const [HOME, CLEAR_REST] = ['\u001b[H\u001b[2J', '\u001b[J'];

export const topLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'top',
        summary:
          'Shows the busiest pools: idle, starting and running instances, and waiting claims, ' +
          'for an admin; on a terminal, refreshes each second.',
        examples: [
          'sandpool top --admin',
          'sandpool top --broken --admin',
          'sandpool top --admin -o json',
        ],
      }),
    ),
  )
    .option('--broken', 'only the pools that can’t start instances (Failed and Degraded), and why')
    .option('--limit <n>', 'maximum number of pools', wholeNumber(1, MOST_POOLS), SHOWN_POOLS)
    .action(
      action(async ({ api, context }, _, options: TopOptions) => {
        const look = lasting(context, () => pageOf(api, options));
        if (!context.stdout.isTTY || options.output === 'json' || options.output === 'yaml') {
          const page = await look();
          return await show(context, options, { value: page, text: () => pageText(page) });
        }
        while (!context.stdout.destroyed) {
          const lines = pageText(await look())
            .split('\n')
            .slice(0, Math.max(1, (context.stdout.rows ?? 24) - 1));
          await print(context.stdout, `${HOME}${lines.join('\n')}\n${CLEAR_REST}`);
          await new Promise((resolve) => {
            setTimeout(resolve, AGAIN_MS);
          });
        }
      }),
    );

const pageOf = async (
  api: SandpoolClient,
  { limit, broken = false }: TopOptions,
): Promise<Page> => {
  const filters: readonly Query<'listPools'>[] = broken
    ? [{ phase: 'Failed' }, { phase: 'Degraded' }]
    : [{}];
  const [replicas, ...lists] = await Promise.all([
    replicasOf(api),
    ...filters.map((filter) =>
      api.call('listPools', { query: { ...filter, all: true, limit: MOST_POOLS } }),
    ),
  ]);
  return {
    pools: lists
      .flatMap(({ items }) => items)
      .sort((a, b) => busy(b) - busy(a) || (a.name < b.name ? -1 : 1))
      .slice(0, limit),
    total: lists.reduce((sum, { total }) => sum + total, 0),
    replicas,
    broken: broken || undefined,
  };
};

const busy = ({ status: { runningReplicas, startingReplicas } }: Pool): number =>
  runningReplicas + startingReplicas;

const pageText = ({ pools, total, replicas, broken = false }: Page): string => {
  const sum = (of: (replica: Replica) => number): number =>
    replicas.reduce((all, each) => all + of(each), 0);
  const [waiting, effects] = [
    sum(({ queues }) => queues?.claimsWaiting ?? 0),
    sum(({ queues }) => (queues ? underWay(queues) : 0)),
  ];
  const head =
    `${pluralize(total, broken ? 'broken pool' : 'pool')}, ` +
    `${pluralize(replicas.length, 'replica')}; ${pluralize(waiting, 'claim')} ` +
    `${waiting === 1 ? 'waits' : 'wait'}, ${pluralize(effects, 'effect')} ` +
    `${effects === 1 ? 'is' : 'are'} under way\n`;
  return `${head}\n${table(
    [
      'POOL',
      'NAMESPACE',
      'PHASE',
      'IDLE',
      'STARTING',
      'RUNNING',
      'ENDING',
      ...(broken ? ['CAUSE'] : []),
    ],
    pools.map(({ name, namespace, status }) =>
      [
        name,
        namespace,
        status.phase,
        status.idleReplicas,
        status.startingReplicas,
        status.runningReplicas,
        status.stoppingReplicas,
        ...(broken ? [causeOf(status)] : []),
      ].map(String),
    ),
  )}`;
};

/** From the pool's condition, if it cannot start instances. */
const causeOf = ({ conditions }: Pool['status']): string => {
  const degraded = conditions.find(({ type, status }) => type === 'Degraded' && status === 'True');
  if (!degraded) return '-';
  return degraded.message === '' ? degraded.reason : `${degraded.reason}: ${degraded.message}`;
};
