import type { Clock } from '../../contracts/clock.ts';

/** Stands in a stream for a time in which nothing came. */
export const SILENCE = Symbol('silence');

const DEFAULT_SECONDS = 90;
const MOST_SECONDS = 3_600;

/** Returns how often a client wants to hear of a silent stream (`Keepalive-Ping-Interval`). */
export const keepaliveMs = (header: string | null): number => {
  const seconds = /^[0-9]{1,6}$/.test(header ?? '') ? Number(header) : DEFAULT_SECONDS;
  return Math.min(Math.max(seconds, 1), MOST_SECONDS) * 1_000;
};

/** Yields the items, and SILENCE whenever none came for `everyMs`. */
export async function* withSilences<T>(
  items: AsyncIterable<T>,
  clock: Clock,
  everyMs: number,
): AsyncGenerator<T | typeof SILENCE, void, undefined> {
  const iterator = items[Symbol.asyncIterator]();
  let wake = (): void => {};
  let come: Promise<IteratorResult<T>> | undefined;
  try {
    for (;;) {
      let isThere = false;
      const next = (come ??= iterator.next());
      // what it rejects with is thrown below
      const arrived = (): void => {
        isThere = true;
        wake();
      };
      next.then(arrived, arrived);
      while (!isThere) {
        const isSilent = await new Promise<boolean>((resolve) => {
          const cancel = clock.at(clock.now() + everyMs, () => resolve(true));
          wake = () => {
            cancel();
            resolve(false);
          };
        });
        if (isSilent && !isThere) yield SILENCE;
      }
      come = undefined;
      const item = await next;
      if (item.done) return;
      yield item.value;
    }
  } finally {
    wake();
    // A reading that is still under way ends by its own signal.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
