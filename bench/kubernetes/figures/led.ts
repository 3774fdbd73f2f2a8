import { eventually } from '../../../local-cluster/eventually.ts';
import type { Replica, Replicas } from '../../../local-cluster/replicas.ts';
import { SHARDS } from '../../../src/model/shards.ts';
import { pause } from '../../process-facts.ts';
import { onACluster } from '../cluster.ts';
import { shardsLedBy } from '../shards-led.ts';

const AWAY_MS = 6_000;
/** So long after Redis went away a replica comes back. */
const BACK_MS = 2_500;

export const led = onACluster(
  'led',
  'Redis stopped for 6 s while a replica comes back: how soon every shard is led',
  async ({ bench, redis, startReplicas }) => {
    const { replicas } = await startReplicas(3);
    const seconds: number[] = [];
    for (let round = 0; round < bench.rounds; round += 1) {
      const victim = replicas.replica(round % replicas.list.length);
      await victim.kill();
      const others = replicas.list.filter((replica) => replica !== victim);
      await eventually(() => areAllLed(others, replicas), 'the others lead all');
      redis.signal('SIGSTOP');
      await pause(BACK_MS);
      const back = victim.start();
      await pause(AWAY_MS - BACK_MS);
      redis.signal('SIGCONT');
      const calm = performance.now();
      seconds.push(
        await eventually(() => areAllLed(replicas.list, replicas), 'all are led').then(
          () => (performance.now() - calm) / 1_000,
          () => Number.POSITIVE_INFINITY,
        ),
      );
      await back;
      bench.say(`every shard is led ${seconds.at(-1)?.toFixed(2)} s after Redis came back`);
    }
    return [
      {
        name: 'Redis away 6 s, a replica back meanwhile: every shard led after',
        unit: 's',
        better: 'less',
        ours: seconds,
        reach: 10,
        beyond: 5,
      },
    ];
  },
);

/** A replica that does not answer leads nothing. */
const areAllLed = async (
  replicas: readonly Replica[],
  { adminKey }: Replicas,
): Promise<boolean> => {
  const shards = await Promise.all(
    replicas.map((replica) => shardsLedBy(replica, adminKey).catch(() => [])),
  );
  return new Set(shards.flat()).size === SHARDS;
};
