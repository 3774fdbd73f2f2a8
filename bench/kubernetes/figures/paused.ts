import { BalancedClient, claimedId, type Outcome } from '../balanced-client.ts';
import { createPool, onACluster, untilIdleOnAll } from '../cluster.ts';
import { pause } from '../../process-facts.ts';

const PAUSE_MS = 20_000;
const EVERY_MS = 500;
const POOL = 'bench';
const IDLE = 300;
const AGAIN_MS = 20;
const AGAIN_WITHIN_MS = 30_000;

export const paused = onACluster(
  'paused',
  'Redis stopped for 20 s: how soon claims are refused, deletes done, and the next claim made',
  async ({ bench, redis, startReplicas }) => {
    const { services, replicas, first, tenantKey } = await startReplicas(3);
    await createPool(first.service, POOL, IDLE);
    const [posts, deletes, first201]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < bench.rounds; round += 1) {
      await untilIdleOnAll(services, POOL, IDLE);
      const client = new BalancedClient(replicas.list, tenantKey);
      const ids: string[] = [];
      for (let n = 0; n < PAUSE_MS / EVERY_MS; n += 1) {
        const id = claimedId(await client.send('POST', '/sandboxes', { poolName: POOL }));
        if (id !== undefined) ids.push(id);
      }
      redis.signal('SIGSTOP');
      const [asked, deleted]: [Promise<Outcome>[], Promise<Outcome>[]] = [[], []];
      for (const id of ids) {
        asked.push(client.send('POST', '/sandboxes', { poolName: POOL }));
        deleted.push(client.send('DELETE', `/sandboxes/${id}`));
        await pause(EVERY_MS);
      }
      redis.signal('SIGCONT');
      const resumed = performance.now();
      let again: Outcome;
      do {
        again = await client.send('POST', '/sandboxes', { poolName: POOL });
        if (again.status !== 201) await pause(AGAIN_MS);
      } while (again.status !== 201 && performance.now() - resumed < AGAIN_WITHIN_MS);
      first201.push((again.ended - resumed) / 1_000);
      posts.push(longest(await Promise.all(asked), 503, bench.say));
      deletes.push(longest(await Promise.all(deleted), 200, bench.say));
      client.stop();
      bench.say(
        `POSTs answered within ${posts.at(-1)?.toFixed(2)} s, DELETEs within ${deletes.at(-1)?.toFixed(2)} s, the first claim after ${first201.at(-1)?.toFixed(2)} s`,
      );
    }
    const row = (name: string, ours: readonly number[], reach: number, beyond: number) => ({
      name,
      unit: 's',
      better: 'less' as const,
      ours,
      reach,
      beyond,
    });
    return [
      row('Redis paused 20 s: POSTs answered 503 within', posts, 2, 1),
      row('Redis paused 20 s: DELETEs answered 200 within', deletes, 2, 0.2),
      row('Redis paused 20 s: first claim after', first201, 3, 1),
    ];
  },
);

/** Seconds; endless where an answer had another status. */
const longest = (
  outcomes: readonly Outcome[],
  status: number,
  say: (text: string) => void,
): number => {
  const other = outcomes.filter((outcome) => outcome.status !== status);
  for (const { status: got, text } of other.slice(0, 5))
    say(`  answered ${got} instead of ${status}: ${text.slice(0, 200)}`);
  return other.length > 0
    ? Number.POSITIVE_INFINITY
    : Math.max(...outcomes.map(({ began, ended }) => ended - began)) / 1_000;
};
