/**
 * The only source of time. `now()` is ms since the epoch, and never runs backwards within a
 * process. `at()` calls back once, at or after the moment, and returns a function that cancels; the
 * delay may exceed the limit of a Node timer.
 */
export interface Clock {
  now(): number;
  at(moment: number, due: () => void): () => void;
}

/** Resolves after `ms`, or at once if the signal aborts. Leaves no timer. Never rejects. */
export const pause = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = (): void => {
      callOff();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const callOff = clock.at(clock.now() + ms, end);
    signal?.addEventListener('abort', end, { once: true });
  });

/** Resolves with undefined if `work` takes longer, and drops a later result. */
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
