import { Child } from './child.ts';
import type { Ask } from './kept-connection.ts';
import { cpuMsOf } from './process-facts.ts';
import { quantile } from './statistics.ts';

/** Given before the run begins. */
export interface LoadOrder {
  readonly port: number;
  readonly asks: readonly Ask[];
  /** `closed`: this many in flight. `open`: this many per second, whatever the answers do. */
  readonly mode:
    | { readonly kind: 'closed'; readonly inFlight: number }
    | { readonly kind: 'open'; readonly perSecond: number };
}

/** In the order of the asks. */
export interface LoadResult {
  /** From sending, or for an open load from the scheduled time. */
  readonly latencies: readonly number[];
  readonly statuses: readonly number[];
  readonly bodies: readonly string[];
  /** From the first request to the last answer. */
  readonly tookMs: number;
}

export interface Cost {
  readonly p50: number;
  readonly perSecond: number;
  /** Processor time per request. */
  readonly cpuMs: number;
}

export class Load {
  readonly #child = new Child<LoadOrder, LoadResult>('load-process');

  closed(port: number, asks: readonly Ask[], inFlight: number): Promise<LoadResult> {
    return this.#child.ask({ port, asks, mode: { kind: 'closed', inFlight } });
  }

  open(port: number, asks: readonly Ask[], perSecond: number): Promise<LoadResult> {
    return this.#child.ask({ port, asks, mode: { kind: 'open', perSecond } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }
}

/** Throws unless each answer has the status. Measures the processes `pids`. */
export const costOf = async (
  pids: readonly number[],
  status: number,
  run: () => Promise<LoadResult>,
): Promise<Cost & { readonly result: LoadResult }> => {
  const cpu = (): number => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
  const before = cpu();
  const result = await run();
  const cpuMs = cpu() - before;
  expectAll(result, status);
  const count = result.latencies.length;
  return {
    result,
    p50: quantile(result.latencies, 0.5),
    perSecond: (count * 1_000) / result.tookMs,
    cpuMs: cpuMs / count,
  };
};

/** Throws unless each answer has the status. */
export const expectAll = ({ statuses, bodies }: LoadResult, status: number): void => {
  const wrong = statuses.findIndex((each) => each !== status);
  if (wrong >= 0)
    throw new Error(
      `an answer had status ${statuses[wrong]} instead of ${status}: ${bodies[wrong]?.slice(0, 300)}`,
    );
};
