import type { ApiClient } from './api-calls.ts';
import type { Log } from '../../contracts/log.ts';
import type { Mirror } from '../../model/mirror/mirror.ts';

export interface ReflectorDeps<T> {
  /** The path of the collection, such as `/api/v1/pods`. */
  readonly path: string;
  /** Is told what the lists and watches tell. */
  readonly mirror: Mirror<T>;
  /**
   * Picks what is kept of an object; undefined: nothing, as if it were not there. What it throws
   * counts as no change.
   */
  readonly trim: (object: unknown) => T | undefined;
  readonly log: Log;
  readonly api: Pick<ApiClient, 'list' | 'get'>;
  /** For the watch, on a connection of its own. */
  readonly watches: ApiClient;
  readonly labelSelector?: string;
  /** Is told what ended a list or a watch, while `refused` still says what was so before. */
  readonly failed?: (error: unknown) => void;
  /** Is told each time that the mirror is known to be what stands, from the first list on. */
  readonly heard?: () => void;
  /** For tests: the daemon takes what is usual. */
  readonly tuning?: ReflectorTuning;
}

export interface ReflectorTuning {
  /** Objects a page. */
  readonly pageSize?: number;
  /** Objects of a collection that is compared to catch up with it. */
  readonly mostCompared?: number;
  readonly timings?: Partial<ReflectorTimings>;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

/** The times by which a reflector follows a collection. */
export interface ReflectorTimings {
  /** A watch ends by itself after this, less up to a fifth. */
  readonly watchSeconds: number;
  /** Without a word from the API server after which the mirror is stale and the link dead. */
  readonly silenceMs: number;
  readonly pageDeadlineMs: number;
  /** Before the first restart, at most; doubled by each further failure up to the most. */
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
  /** Lists after the first. */
  relists: number;
  /** Watches that ended otherwise than by their time. */
  restarts: number;
  events: number;
  /** Objects that could not be trimmed, changes whose report threw. */
  mishaps: number;
}

export const [PAGE_SIZE, MOST_COMPARED] = [250, 2_000];

/** An event that is on its way comes sooner. */
export const PATIENCE_MS = 250;

export const SLICE_MS = 8;

/** Bookmarks come two seconds before a watch's end. */
export const SHORT_WATCH_SECONDS = 3;

export const ENDS_AT_ONCE_MS = 500;

/** A watch that ends so much before its time was ended by something else. */
export const EARLY_MS = 1_500;

/** After so long a watch its end is no failure in a row. */
export const CALM_MS = 10_000;

/** HTTP 410, reason `Expired`. */
export const FORGOTTEN = 410;

/** HTTP 403: the daemon lacks the rights. */
export const FORBIDDEN = 403;
