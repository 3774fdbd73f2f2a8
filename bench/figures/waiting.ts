import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { encodeAsk, KeptConnection } from '../kept-connection.ts';
import { pause } from '../process-facts.ts';
import type { Service } from '../service.ts';
import { quantile } from '../statistics.ts';

const POOL = 'waiting';
/** Claims a round, one after the other: each waits for the successor of the one before. */
const CLAIMS = 40;
/** Before the instance that is in the way is given back, so that the claim stands in its line. */
const STANDS_MS = 20;

export const waiting: Figure = {
  name: 'waiting',
  about: 'a claim that waits: from the moment at which an instance is ready to its answer',
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      await service.createFullPool(POOL, 1);
      const rounds: { p50: number; p99: number }[] = [];
      for (let round = 0; round <= bench.rounds; round += 1) {
        const latencies = await oneRound(service);
        if (round > 0)
          // the first warms up
          rounds.push({ p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) });
      }
      return [
        {
          name: 'waiting claim: instance idle to answer, p50',
          unit: 'ms',
          better: 'less',
          reach: 20,
          beyond: 5,
          ours: rounds.map(({ p50 }) => p50),
        },
        { name: 'the same, p99', unit: 'ms', better: 'less', ours: rounds.map(({ p99 }) => p99) },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

/**
 * `startedAt` is the daemon's clock, set by the machine's when it started, in whole milliseconds.
 */
const oneRound = async (service: Service): Promise<readonly number[]> => {
  const latencies: number[] = [];
  let before = await service.claim(POOL);
  const connection = await KeptConnection.open(service.port);
  try {
    for (let n = 0; n < CLAIMS; n += 1) {
      const [ask] = service.keyed([
        {
          method: 'POST',
          path: '/sandboxes',
          key: '',
          body: JSON.stringify({ poolName: POOL, waitTimeoutSeconds: 30 }),
        },
      ]);
      if (!ask) throw new Error('there is one');
      const asked = connection.send(encodeAsk(ask));
      await pause(STANDS_MS);
      await service.call({ method: 'DELETE', path: `/sandboxes/${before}` }, 200);
      const answer = await asked;
      const answeredAt = performance.timeOrigin + performance.now();
      if (answer.status !== 201)
        throw new Error(
          `a waiting claim was answered with ${answer.status}: ${answer.body.slice(0, 300)}`,
        );
      before = (JSON.parse(answer.body) as { readonly sandbox: { readonly sandboxId: string } })
        .sandbox.sandboxId;
      latencies.push(answeredAt - (await startedAt(service, before)));
    }
  } finally {
    connection.close();
  }
  await service.call({ method: 'DELETE', path: `/sandboxes/${before}` }, 200);
  await service.untilIdle(POOL, 1);
  return latencies;
};

const startedAt = async (service: Service, id: string): Promise<number> => {
  const { items } = JSON.parse(
    await service.call({ method: 'GET', path: `/sandboxes?poolName=${POOL}&phase=Running` }, 200),
  ) as { readonly items: readonly { readonly sandboxId: string; readonly startedAt: string }[] };
  const found = items.find(({ sandboxId }) => sandboxId === id);
  if (!found) throw new Error('the list does not show it');
  return Date.parse(found.startedAt);
};
