import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../local-cluster/eventually.ts';
import { commandDaemon } from '../../src/cli/common/control.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import { costOf, type Cost } from '../load.ts';
import { rowOf } from '../measure.ts';

const POOL = 'bench';
const CLAIMS = 200;
const WARM_UP = 5;

export const fleet: Figure = {
  name: 'fleet',
  about: 'a claim on another cluster through a manager, against the worker asked directly',
  run: async (bench) => {
    const flags = ['--role', 'manager', '--cluster-id', 'hub'];
    await using manager = await Daemon.start(bench.load, flags);
    await using worker = await startWorker(bench, manager);
    await worker.service.createFullPool(POOL, CLAIMS);
    const side =
      ({ service }: Daemon, pool: string) =>
      async (): Promise<Cost> => {
        const cost = await costOf([manager.pid, worker.pid], 201, () =>
          bench.load.closed(service.port, service.claims(pool, CLAIMS), 1),
        );
        await service.giveBack(cost.result);
        await worker.service.untilIdle(POOL, CLAIMS);
        await worker.calm();
        await manager.calm();
        return cost;
      };
    const sides = { ours: side(manager, `west::${POOL}`), theirs: side(worker, POOL) };
    const pairs = await inPairs(bench, sides, WARM_UP);
    return [
      rowOf(
        { name: 'claim through a manager, p50 / direct', reach: 1.5, beyond: 1.2 },
        pairs,
        ({ p50 }) => p50,
      ),
      rowOf({ name: 'processor time of both daemons / direct' }, pairs, ({ cpuMs }) => cpuMs),
    ];
  },
};

const startWorker = async (bench: Bench, { dataDir, service }: Daemon): Promise<Daemon> => {
  const { token } = await commandDaemon(dataDir, '/clusters/join-token', { clusterID: 'west' });
  const file = join(dataDir, 'west.token');
  writeFileSync(file, String(token), { mode: 0o600 });
  const worker = await Daemon.start(bench.load, [
    ...['--cluster-id', 'west'],
    ...['--fleet-managers', `ws://127.0.0.1:${service.port}`],
    ...['--fleet-join-token-file', file],
  ]);
  await eventually(async () => {
    const { items } = JSON.parse(await service.call({ method: 'GET', path: '/clusters' }, 200)) as {
      readonly items: readonly { readonly isLocal: boolean; readonly status: string }[];
    };
    return items.some(({ isLocal, status }) => !isLocal && status === 'Connected');
  }, 'the worker is linked');
  return worker;
};
