import { exponential } from './random.ts';

/** When the next claim comes after `now` (ms); Infinity where none does. To be asked in order. */
export type Arrivals = (now: number) => number;

/** Claims a second, at a moment (ms). */
export type Rate = (now: number) => number;

/** Poisson arrivals at a rate that changes: drawn at its peak, and thinned. */
export const poisson =
  (rate: Rate, peak: number, random: () => number): Arrivals =>
  (now) => {
    let at = now;
    do at += exponential(random, 1_000 / peak);
    while (random() * peak >= rate(at) && at < now + LONGEST_MS);
    return at;
  };

/** A claim at each of these moments (ms, ascending). */
export const recorded = (moments: readonly number[]): Arrivals => {
  let next = 0;
  return () => moments[next++] ?? Number.POSITIVE_INFINITY;
};

/**
 * The moments of a file, from its first one on (ms): one a line, as ISO 8601 or as seconds, in any
 * order; empty lines and lines that begin with # are left out. Throws, naming the line, where one
 * is neither, or there are more than a million.
 */
export const momentsOf = (text: string): readonly number[] => {
  const moments = text
    .split('\n')
    .flatMap((line, index) => {
      const word = line.trim();
      if (word === '' || word.startsWith('#')) return [];
      const moment = /^\d+(\.\d+)?$/.test(word) ? Number(word) * 1_000 : Date.parse(word);
      if (!Number.isFinite(moment))
        throw new RangeError(
          `line ${index + 1}: ${JSON.stringify(word.slice(0, 80))} is neither a timestamp nor seconds`,
        );
      return [Math.round(moment)];
    })
    .sort((a, b) => a - b);
  if (moments.length > MOST_MOMENTS) throw new RangeError(`more than ${MOST_MOMENTS} claims`);
  const first = moments[0] ?? 0;
  return moments.map((moment) => moment - first);
};

const MOST_MOMENTS = 1_000_000;

/** Where the rate is zero for long, nothing more is looked for. */
const LONGEST_MS = 48 * 3_600_000;
