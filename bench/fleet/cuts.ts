import type { Daemon } from '../daemon.ts';
import type { Bench, Figure } from '../figure.ts';
import { pause } from '../process-facts.ts';
import { startManager, startWorker } from './a-fleet.ts';
import { CuttableLink } from './cuttable-link.ts';

const LOOK_MS = 5;
const WITHIN_MS = 30_000;

/**
 * The request is sent in the moment of the cut, which says nothing to either side; and from the
 * moment when bytes pass again one request after the other, until one is served.
 */
export const cuts: Figure = {
  name: 'fleet:cut',
  about:
    'a link that is cut without a word, until a request is refused; healed, until it is served',
  run: async (bench) => {
    const manager = await startManager(bench);
    try {
      const link = await CuttableLink.to(manager.service.port);
      try {
        const worker = await startWorker(bench, manager, { clusterId: 'west', port: link.port });
        try {
          return await measure(bench, { manager, worker, link });
        } finally {
          await worker.dispose();
        }
      } finally {
        await link.close();
      }
    } finally {
      await manager.dispose();
    }
  },
};

const measure = async (
  bench: Bench,
  { manager, worker, link }: { manager: Daemon; worker: Daemon; link: CuttableLink },
) => {
  await worker.service.createFullPool('bench', 1);
  const path = `/sandboxes/west.${await worker.service.claim('bench')}`;
  const statusOf = async (): Promise<number> =>
    (await manager.service.answerTo({ method: 'GET', path })).status;
  const untilStatus = async (wanted: number): Promise<number> => {
    const began = performance.now();
    for (;;) {
      const status = await statusOf();
      const tookMs = performance.now() - began;
      if (status === wanted) return tookMs;
      if (tookMs > WITHIN_MS) throw new Error(`it is answered with ${status} for too long`);
      await pause(LOOK_MS);
    }
  };
  const found: { readonly refused: number; readonly served: number }[] = [];
  for (let round = 0; round < bench.rounds; round += 1) {
    await untilStatus(200);
    link.cut();
    const refused = await untilStatus(503);
    link.heal();
    found.push({ refused, served: await untilStatus(200) });
  }
  const row = (name: string, of: 'refused' | 'served', reach: number) => ({
    name,
    unit: 'ms',
    better: 'less' as const,
    reach,
    beyond: 1_000,
    ours: found.map((each) => each[of]),
  });
  return [
    row('link cut without a word → refused', 'refused', 3_000),
    row('link healed → served', 'served', 2_000),
  ];
};
