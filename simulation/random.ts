/** Numbers in [0, 1) that a seed repeats: mulberry32. */
export const randomOf = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

/**
 * Exponentially distributed, with that mean, and whole: so that nobody's last digit of a logarithm
 * matters.
 */
export const exponential = (random: () => number, mean: number): number =>
  Math.round(-Math.log(1 - random()) * mean);
