import { fillHistory } from '../filled-history.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import { quantile } from '../statistics.ts';

const FINISHED = 100_000;
const OFFSETS = [50_000, 99_980];
const PAGES = 100;

export const list: Figure = {
  name: 'list',
  about: `GET /sandboxes at offsets ${OFFSETS.join(' and ')} of ${FINISHED} finished ones, against offset 0`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load, [], { prepare: fillHistory(FINISHED) });
    try {
      const { service } = daemon;
      const side = (offset: number) => async (): Promise<number> => {
        const [page] = service.keyed([{ method: 'GET', path: `/sandboxes?offset=${offset}` }]);
        if (!page) throw new Error('there is nothing to ask');
        const result = await bench.load.closed(
          service.port,
          Array.from({ length: PAGES }, () => page),
          1,
        );
        expectAll(result, 200);
        const { items, total } = JSON.parse(result.bodies[0] ?? '') as {
          items: readonly unknown[];
          total: number;
        };
        if (items.length !== 20 || total !== FINISHED)
          throw new Error(`a page had ${items.length} of ${total}`);
        return quantile(result.latencies, 0.5);
      };
      for (const offset of [0, ...OFFSETS, 0, ...OFFSETS]) await side(offset)();
      const measures = [];
      for (const offset of OFFSETS) {
        measures.push({
          name: `list at offset ${offset} / 0, p50`,
          unit: 'ms',
          better: 'less' as const,
          reach: 5,
          beyond: 1.5,
          ...(await inPairs(bench, { ours: side(offset), theirs: side(0) })),
        });
      }
      return measures;
    } finally {
      await daemon.dispose();
    }
  },
};
