import type { Ask } from './kept-connection.ts';

/** What the load process is told. All requests of a run are given before it begins. */
export interface LoadOrder {
  readonly port: number;
  readonly asks: readonly Ask[];
  /**
   * `closed`: so many in flight, the next one when an answer came. `open`: so many a second,
   * whatever the answers do.
   */
  readonly mode:
    | { readonly kind: 'closed'; readonly inFlight: number }
    | { readonly kind: 'open'; readonly perSecond: number };
}

/** In the order of the asks. */
export interface LoadResult {
  /** From sending, or for an open load from the moment that the schedule gave. Milliseconds. */
  readonly latencies: readonly number[];
  readonly statuses: readonly number[];
  readonly bodies: readonly string[];
  /** From the first request to the last answer. */
  readonly tookMs: number;
}

export type LoadAnswer = { readonly result: LoadResult } | { readonly failed: string };
