import type { Look, Rest } from './history.ts';

/** Bounds the time counted between two looks of a busy machine. */
const MOST_BETWEEN_MS = 500;

/** Only calm time counts. An undecided look starts a new run. */
export const longestWithout = (
  { looks }: Pick<Rest, 'looks'>,
  holds: (look: Look) => boolean | undefined,
): number => {
  let [longest, open] = [0, 0];
  let before: Look | undefined;
  for (const look of looks) {
    const without = holds(look) === false;
    open = without && before ? open + Math.min(MOST_BETWEEN_MS, look.asked - before.asked) : 0;
    before = without ? look : undefined;
    longest = Math.max(longest, open);
  }
  return longest;
};

export const calmOf = (rest: Pick<Rest, 'looks'>): number => longestWithout(rest, () => false);
