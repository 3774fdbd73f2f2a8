import type { ApiClient } from './api-calls.ts';
import type { Log } from '../../contracts/log.ts';
import type { Mirror } from '../../model/mirror/mirror.ts';

export interface ReflectorDeps<T> {
  /** Path of the collection, such as `/api/v1/pods`. */
  readonly path: string;
  /** Receives the results of lists and watches. */
  readonly mirror: Mirror<T>;
  /**
   * Reduces an object to its stored part; undefined hides the object. A throw counts as no change.
   */
  readonly trim: (object: unknown) => T | undefined;
  readonly log: Log;
  readonly api: Pick<ApiClient, 'list' | 'get'>;
  /** Client for the watch, with its own connection. */
  readonly watches: ApiClient;
  readonly labelSelector?: string;
  /** Receives the error of a list or watch. `refused` still shows the earlier state. */
  readonly failed?: (error: unknown) => void;
  /** Called each time the mirror is known to be current, from the first list on. */
  readonly heard?: () => void;
  /** Settings for tests; the daemon uses the defaults. */
  readonly tuning?: ReflectorTuning;
}

export interface ReflectorTuning {
  /** Objects per page. */
  readonly pageSize?: number;
  /** Largest collection that is compared in order to catch up. */
  readonly mostCompared?: number;
  readonly timings?: Partial<ReflectorTimings>;
  /** Random number from 0 up to 1. */
  readonly random?: () => number;
}

/** Times of a reflector, in ms. */
export interface ReflectorTimings {
  /** A watch ends after this time, less up to a fifth. */
  readonly watchSeconds: number;
  /** After this silence of the API server, the mirror is stale and the link dead. */
  readonly silenceMs: number;
  readonly pageDeadlineMs: number;
  /** Longest delay of the first restart. Each further failure doubles it, up to the maximum. */
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
  /** Number of lists after the first. */
  relists: number;
  /** Number of watches that ended early. */
  restarts: number;
  events: number;
  /** Number of objects that could not be trimmed, and of changes whose report threw. */
  mishaps: number;
}

export const [PAGE_SIZE, MOST_COMPARED] = [250, 2_000];

/** Longer than an event takes to arrive. */
export const PATIENCE_MS = 250;

export const SLICE_MS = 8;

/** The API server sends bookmarks two seconds before a watch's end. */
export const SHORT_WATCH_SECONDS = 3;

export const ENDS_AT_ONCE_MS = 500;

/** A watch that ends this much early was interrupted. */
export const EARLY_MS = 1_500;

/** The end of a watch this long does not count as a repeated failure. */
export const CALM_MS = 10_000;

/** HTTP 410, reason `Expired`. */
export const FORGOTTEN = 410;

/** HTTP 403: the daemon lacks the rights. */
export const FORBIDDEN = 403;
