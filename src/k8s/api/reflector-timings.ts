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
