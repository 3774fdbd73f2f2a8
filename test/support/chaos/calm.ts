import type { Look, Rest } from './history.ts';

/**
 * A machine that is short of time has more of it: of what lies between two looks so much counts.
 */
const MOST_BETWEEN_MS = 500;

/**
 * In the longest run of looks for which it does not hold: how much calm time lay in it. A look that
 * can't tell begins anew.
 */
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

/** As `longestWithout` counts. */
export const calmOf = (rest: Pick<Rest, 'looks'>): number => longestWithout(rest, () => false);
