import type { Daemon } from './daemon.ts';
import type { Bench } from './figure.ts';
import type { Ask } from './kept-connection.ts';
import type { LoadResult } from './load-protocol.ts';
import { cpuMsOf } from './process-facts.ts';
import { quantile } from './statistics.ts';

/** At a time: the sides take turns so often that what else the machine does meets both. */
const SLICE = 20;
/** Rounds before anything counts, until the code is compiled. */
const WARM_UP = 4;
const POOL = 'bench';

/** One of two ways to claim from a pool of a daemon; both may be of one daemon. */
export interface ClaimSide {
  readonly daemon: Daemon;
  /** Absent: the port of the REST API. */
  readonly port?: number;
  readonly asks?: (pool: string, count: number) => readonly Ask[];
}

export interface ClaimSample {
  readonly p50: number;
  readonly cpuMs: number;
}

/**
 * Claims so many in each round from both sides in turn, one claim after the other. The pools hold as
 * many, and are full again before the next round.
 */
export const claimsInTurn = async (
  bench: Bench,
  sides: { readonly ours: ClaimSide; readonly theirs: ClaimSide },
  claims: number,
): Promise<{ readonly ours: readonly ClaimSample[]; readonly theirs: readonly ClaimSample[] }> => {
  const daemons = [...new Set([sides.ours.daemon, sides.theirs.daemon])];
  const each = (claims * 2) / daemons.length;
  for (const { service } of daemons) await service.createFullPool(POOL, each);
  const found: { ours: ClaimSample; theirs: ClaimSample }[] = [];
  for (let round = 0; round < WARM_UP + bench.rounds; round += 1) {
    const [ours, theirs] = [new Claims(bench, sides.ours), new Claims(bench, sides.theirs)];
    for (let slice = 0; slice < claims / SLICE; slice += 1)
      for (const side of slice % 2 === 0 ? [ours, theirs] : [theirs, ours]) await side.some();
    for (const side of [ours, theirs]) await side.giveBack();
    for (const daemon of daemons) {
      await daemon.service.untilIdle(POOL, each);
      await daemon.calm();
    }
    found.push({ ours: ours.sample, theirs: theirs.sample });
  }
  const counted = found.slice(WARM_UP);
  return { ours: counted.map(({ ours }) => ours), theirs: counted.map(({ theirs }) => theirs) };
};

class Claims {
  readonly #bench: Bench;
  readonly #side: ClaimSide;
  readonly #claimed: LoadResult[] = [];
  #cpuMs = 0;

  constructor(bench: Bench, side: ClaimSide) {
    this.#bench = bench;
    this.#side = side;
  }

  get sample(): ClaimSample {
    const latencies = this.#claimed.flatMap((result) => result.latencies);
    return { p50: quantile(latencies, 0.5), cpuMs: this.#cpuMs / latencies.length };
  }

  async some(): Promise<void> {
    const { daemon, port = daemon.service.port, asks } = this.#side;
    const claims = asks?.(POOL, SLICE) ?? daemon.service.claims(POOL, SLICE);
    const before = cpuMsOf(daemon.pid);
    this.#claimed.push(await this.#bench.load.closed(port, claims, 1));
    this.#cpuMs += cpuMsOf(daemon.pid) - before;
  }

  async giveBack(): Promise<void> {
    for (const result of this.#claimed) await this.#side.daemon.service.giveBack(result);
  }
}
