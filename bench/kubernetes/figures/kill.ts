import { silentLog } from '../../../src/contracts/log.ts';
import { apiServer } from '../../../src/k8s/api/api-client.ts';
import { readClusterAccess } from '../../../src/k8s/api/cluster-access.ts';
import { pause } from '../../process-facts.ts';
import { BalancedClient } from '../balanced-client.ts';
import { PodCreator } from '../births.ts';
import { createPool, onACluster, untilIdleOnAll } from '../cluster.ts';
import { Cycles, isGood } from '../cycles.ts';
import { leaderOf } from '../leader-of.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

const PER_SECOND = 15;
/** More than are claimed until another replica leads, on a machine that is slow to start them. */
const IDLE = 300;
const POOL = 'bench';
const [BEFORE_MS, AFTER_MS] = [5_000, 12_000];

export const kill = onACluster(
  'kill',
  `kill -9 of the replica that leads the pool, at ${PER_SECOND} claims and deletes a second`,
  async ({ bench, controlPlane, startReplicas }) => {
    const started = await startReplicas(3);
    const { services, replicas, tenantKey } = started;
    await createPool(started.first.service, POOL, IDLE);
    const [failures, pauses]: [number[], number[]] = [[], []];
    const api = apiServer({
      metrics: silentMetrics,
      access: await readClusterAccess(
        { kubeconfig: controlPlane.kubeconfig('sandpool') },
        silentLog,
      ),
      version: 'bench',
    });
    try {
      for (let round = 0; round < bench.rounds; round += 1) {
        await untilIdleOnAll(services, POOL, IDLE);
        const births = await PodCreator.begin(api, started.tenantNamespace);
        const client = new BalancedClient(replicas.list, tenantKey);
        const cycles = new Cycles(client, POOL, PER_SECOND);
        await pause(BEFORE_MS);
        const victim = await leaderOf(POOL, { controlPlane }, started);
        const killedAt = performance.now();
        await victim.kill();
        const diedAt = performance.now();
        await pause(AFTER_MS);
        const outcomes = await cycles.stop();
        client.stop();
        const failed = outcomes.filter((outcome) => !isGood(outcome));
        const beyond = failed.filter(
          ({ port, began, ended }) =>
            !(port === victim.port && began <= diedAt && ended >= killedAt),
        );
        for (const { status, text, began } of beyond)
          bench.say(
            `  failed ${(began - killedAt).toFixed(0)} ms after the kill: ${status} ${text.slice(0, 200)}`,
          );
        failures.push(beyond.length);
        pauses.push(births.longestPause(killedAt - 1_000) / 1_000);
        bench.say(
          `${outcomes.length} requests, ${failed.length} failed, ${beyond.length} of them beyond those in flight; refill paused for ${pauses.at(-1)?.toFixed(2)} s`,
        );
        births.stop();
        await victim.start();
      }
    } finally {
      await api.close();
    }
    return [
      {
        name: `kill -9 at ${PER_SECOND} cycles/s: failures beyond requests in flight`,
        unit: '',
        better: 'less',
        ours: failures,
        reach: 0,
      },
      {
        name: 'the same: refill goes on after',
        unit: 's',
        better: 'less',
        ours: pauses,
        reach: 6,
        beyond: 4,
      },
    ];
  },
);
