import type { ApiClient } from './api-calls.ts';
import type { Log } from '../../contracts/log.ts';
import type { Mirror } from '../../model/mirror/mirror.ts';

export interface ReflectorDeps<T> {
  readonly path: string;
  readonly mirror: Mirror<T>;
  /**
   * Reduces an object to its stored part; undefined hides the object. A throw counts as no change.
   */
  readonly trim: (object: unknown) => T | undefined;
  readonly log: Log;
  readonly api: Pick<ApiClient, 'list' | 'get'>;
  readonly watches: ApiClient;
  readonly labelSelector?: string;
  readonly failed?: (error: unknown) => void;
  readonly heard?: () => void;
  readonly tuning?: ReflectorTuning;
}

export interface ReflectorTuning {
  readonly pageSize?: number;
  readonly mostCompared?: number;
  readonly timings?: Partial<ReflectorTimings>;
  readonly random?: () => number;
}

export interface ReflectorTimings {
  /** Less up to a fifth. */
  readonly watchSeconds: number;
  /** The mirror is then stale and the link dead. */
  readonly silenceMs: number;
  readonly pageDeadlineMs: number;
  /** Each further failure doubles the delay. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
}

export const TIMINGS: ReflectorTimings = {
  watchSeconds: 30,
  silenceMs: 35_000,
  pageDeadlineMs: 15_000,
  firstPauseMs: 200,
  longestPauseMs: 5_000,
};

export interface ReflectorCounters {
  lists: number;
  relists: number;
  restarts: number;
  events: number;
  mishaps: number;
}

export const [PAGE_SIZE, MOST_COMPARED] = [250, 2_000];

/** Longer than an event takes to arrive. */
export const PATIENCE_MS = 250;

export const SLICE_MS = 8;

/** Bookmarks come two seconds before a watch's end. */
export const SHORT_WATCH_SECONDS = 3;

export const ENDS_AT_ONCE_MS = 500;

export const EARLY_MS = 1_500;

/** A watch this long does not count as a repeated failure. */
export const CALM_MS = 10_000;

export const FORGOTTEN = 410;

export const FORBIDDEN = 403;
