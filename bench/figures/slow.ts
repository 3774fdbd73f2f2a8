import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import { pause } from '../process-facts.ts';
import { SlowConnections } from '../slow-connections.ts';
import { quantile } from '../statistics.ts';

const CONNECTIONS = 300;
const GETS = 1_000;
const PER_SECOND = 200;
const OPEN_DEADLINE_MS = 5_000;

export const slow: Figure = {
  name: 'slow',
  about: `GET p99 beside ${CONNECTIONS} connections that drip, against without them`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      await service.createPool('bench', 0);
      const [get] = service.keyed([{ method: 'GET', path: '/sandboxpools/bench' }]);
      if (!get) throw new Error('there is nothing to ask');
      const p99 = async (): Promise<number> => {
        const result = await bench.load.open(
          service.port,
          Array.from({ length: GETS }, () => get),
          PER_SECOND,
        );
        expectAll(result, 200);
        return quantile(result.latencies, 0.99);
      };
      const beside = async (): Promise<number> => {
        const connections = new SlowConnections(service.port, CONNECTIONS);
        try {
          const deadline = performance.now() + OPEN_DEADLINE_MS;
          while (connections.open < CONNECTIONS) {
            if (performance.now() > deadline)
              throw new Error(`only ${connections.open} connections are open`);
            await pause(10);
          }
          return await p99();
        } finally {
          connections.close();
        }
      };
      await p99();
      return [
        {
          name: `GET p99, beside ${CONNECTIONS} slow connections / alone`,
          unit: 'ms',
          better: 'less',
          reach: 3,
          beyond: 1.5,
          ...(await inPairs(bench, { ours: beside, theirs: p99 })),
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};
