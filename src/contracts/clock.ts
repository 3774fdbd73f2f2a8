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

/**
 * Settles as `work` does; resolves with undefined once that takes longer. What it comes to then is
 * nobody's.
 */
export const within = async <T>(
  clock: Clock,
  withinMs: number,
  work: Promise<T>,
): Promise<T | undefined> => {
  let callOff = (): void => undefined;
  const late = new Promise<undefined>((resolve) => {
    callOff = clock.at(clock.now() + withinMs, () => {
      resolve(undefined);
    });
  });
  return await Promise.race([work, late]).finally(() => {
    callOff();
  });
};
