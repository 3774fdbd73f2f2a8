import { BalancedClient } from '../balanced-client.ts';
import { createPool, onACluster, untilIdleOnAll } from '../cluster.ts';
import { Cycles, isGood } from '../cycles.ts';
import { pause } from '../../process-facts.ts';

/** Each a claim and a delete. */
const CYCLES_PER_SECOND = 15;
const IDLE = 300;
const POOL = 'bench';
const BETWEEN_MS = 2_000;

export const rolling = onACluster(
  'rolling',
  'a rolling restart of three replicas under 30 requests a second through a client that honours readiness',
  async ({ bench, startReplicas }) => {
    const { services, replicas, first, tenantKey } = await startReplicas(3, {
      SANDPOOL_SHUTDOWN_DELAY: '2s',
    });
    await createPool(first.service, POOL, IDLE);
    const failures: number[] = [];
    for (let round = 0; round < bench.rounds; round += 1) {
      await untilIdleOnAll(services, POOL, IDLE);
      const client = new BalancedClient(replicas.list, tenantKey);
      const cycles = new Cycles(client, POOL, CYCLES_PER_SECOND);
      await pause(BETWEEN_MS);
      for (const replica of replicas.list) {
        await replica.stop();
        await replica.start();
        await pause(BETWEEN_MS);
      }
      const outcomes = await cycles.stop();
      client.stop();
      const failed = outcomes.filter((outcome) => !isGood(outcome));
      for (const { status, text } of failed.slice(0, 10))
        bench.say(`  failed: ${status} ${text.slice(0, 200)}`);
      bench.say(`${outcomes.length} requests, ${failed.length} failed`);
      failures.push(failed.length);
    }
    return [
      {
        name: 'rolling restart of three replicas under 30 req/s: failed',
        unit: '',
        better: 'less',
        ours: failures,
        reach: 0,
      },
    ];
  },
);
