/**
 * The one source of time. `now()` is milliseconds since the epoch; it never runs backwards within a
 * process. `at()` calls back once, at or after the moment, and returns the way to call it off. Any
 * distance is fine, also beyond what a Node timer can hold. Deliberately absent: intervals; what
 * repeats arms itself again.
 */
export interface Clock {
  now(): number;
  at(moment: number, due: () => void): () => void;
}
