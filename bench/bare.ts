import { join } from 'node:path';
import type { BareMode } from './bare-server.ts';
import { Child } from './child.ts';
import type { Ask } from './kept-connection.ts';
import { expectAll, type Load } from './load.ts';
import type { LoadResult } from './load-protocol.ts';
import { median } from './statistics.ts';

export const BARE_MODES: readonly BareMode[] = ['direct', 'gathered', 'worker'];

/** A bare server that runs. */
export class Bare {
  readonly mode: BareMode;
  readonly #child: Child<never, number>;
  #port = 0;

  private constructor(mode: BareMode, child: Child<never, number>) {
    this.mode = mode;
    this.#child = child;
  }

  static async start(folder: string, mode: BareMode): Promise<Bare> {
    const bare = new Bare(
      mode,
      new Child<never, number>('bare-server', {
        args: [join(folder, `bare-${mode}-${performance.now()}.db`), mode],
      }),
    );
    bare.#port = await bare.#child.hear();
    return bare;
  }

  get port(): number {
    return this.#port;
  }
  get pid(): number {
    return this.#child.pid;
  }

  asks(count: number): readonly Ask[] {
    return Array.from({ length: count }, () => ({
      method: 'POST',
      path: '/',
      body: JSON.stringify({ poolName: 'bench' }),
    }));
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }
}

/** A bare server whose code is compiled. */
export const warmBare = async (folder: string, load: Load, mode: BareMode): Promise<Bare> => {
  const bare = await Bare.start(folder, mode);
  expectAll(await load.closed(bare.port, bare.asks(WARM_UP), 8), 201);
  return bare;
};

/**
 * Starts one of each kind, tries them in turn, and keeps the one that is best at this load; the
 * others end.
 */
export const strongestBare = async (
  folder: string,
  load: Load,
  run: (bare: Bare) => Promise<LoadResult>,
  costOf: (result: LoadResult) => number,
): Promise<Bare> => {
  const all: Bare[] = [];
  for (const mode of BARE_MODES) all.push(await warmBare(folder, load, mode));
  const costs = new Map<Bare, number[]>(all.map((bare) => [bare, []]));
  for (let round = 0; round < TRIALS; round += 1) {
    for (const bare of all) {
      const result = await run(bare);
      expectAll(result, 201);
      costs.get(bare)?.push(costOf(result));
    }
  }
  const [best, ...others] = [...all].sort(
    (a, b) => median(costs.get(a) ?? []) - median(costs.get(b) ?? []),
  );
  await Promise.all(others.map((bare) => bare.stop()));
  if (!best) throw new Error('no bare server runs');
  return best;
};

const TRIALS = 3;
/** Requests before anything counts, until the code is compiled. */
const WARM_UP = 1_000;
