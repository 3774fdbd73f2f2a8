import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { expectAll, type Load } from '../load.ts';
import { cpuMsOf, pause } from '../process-facts.ts';
import { reactions as roundOf } from '../reactions.ts';
import type { Service } from '../service.ts';
import { quantile } from '../statistics.ts';

const [ENVS, MEMBERS] = [1_000, 3];
const IN_FLIGHT = 16;
const CALM_MS = 30_000;
/** Each group is looked at in it, however seldom. */
const IDLE_MS = 60_000;
const MOST_IDLE_ROUNDS = 2;

export const scaling: Figure = {
  name: 'scaling',
  about: `a refused claim to the first new instance; processor time of ${ENVS} envs with ${MEMBERS} members each, idle`,
  run: async (bench) => {
    const reactions: number[] = [];
    const daemon = await Daemon.start(bench.load);
    try {
      for (let round = 0; round <= bench.rounds; round += 1) {
        const latencies = await roundOf(daemon.service, 'default');
        if (round > 0) reactions.push(quantile(latencies, 0.5)); // the first warms up
      }
    } finally {
      await daemon.dispose();
    }
    const idle = await Daemon.start(bench.load, ['--quotas-pools', '100000']);
    const shares: number[] = [];
    try {
      await fill(bench.load, idle.service);
      await pause(CALM_MS); // what was made has settled
      for (let round = 0; round < Math.min(bench.rounds, MOST_IDLE_ROUNDS); round += 1) {
        const before = cpuMsOf(idle.pid);
        await pause(IDLE_MS);
        shares.push(((cpuMsOf(idle.pid) - before) / IDLE_MS) * 100);
      }
    } finally {
      await idle.dispose();
    }
    return [
      {
        name: 'refused claim to the first new instance, p50',
        unit: 'ms',
        better: 'less',
        reach: 100,
        beyond: 20,
        ours: reactions,
      },
      {
        name: `${ENVS} envs with ${MEMBERS} members each, idle: share of a processor`,
        unit: '%',
        better: 'less',
        reach: 3,
        beyond: 1,
        ours: shares,
      },
    ];
  },
};

const fill = async (load: Load, service: Service): Promise<void> => {
  const names = Array.from({ length: ENVS }, (_, at) => `env-${at}`);
  const all = async (asks: readonly Ask[]): Promise<void> => {
    expectAll(await load.closed(service.port, service.keyed(asks), IN_FLIGHT), 201);
  };
  await all(
    names.map((name) => ({
      method: 'POST',
      path: '/envs',
      key: '',
      body: JSON.stringify({ name, templateRef: { name: 'default' } }),
    })),
  );
  for (let member = 0; member < MEMBERS; member += 1) {
    await all(
      names.map((name) => ({
        method: 'POST',
        path: `/envs/${name}/sandboxpools`,
        key: '',
        body: JSON.stringify({ name: `${name}-${member}`, replicas: 0, maxReplicas: 8 }),
      })),
    );
  }
};
