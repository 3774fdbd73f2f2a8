import type { Load } from './load.ts';
import type { Measure } from './measure.ts';

export interface Bench {
  readonly load: Load;
  /** A row is the median of so many rounds. */
  readonly rounds: number;
  /** For databases and orders of the compared side; removed at the end. */
  readonly folder: string;
  readonly say: (text: string) => void;
}

/** One or more rows of the table. */
export interface Figure {
  readonly name: string;
  readonly about: string;
  readonly run: (bench: Bench) => Promise<readonly Measure[]>;
}

export interface Pairs<T> {
  readonly ours: readonly T[];
  readonly theirs: readonly T[];
}

/**
 * Runs both sides in each round, in turn, and the other one first in every second round. Does not
 * count the first `warmUp` rounds, in which the code is compiled.
 */
export const inPairs = async <T>(
  { rounds }: Pick<Bench, 'rounds'>,
  sides: { readonly ours: () => Promise<T>; readonly theirs: () => Promise<T> },
  warmUp = 0,
): Promise<Pairs<T>> => {
  const results: { ours: T[]; theirs: T[] } = { ours: [], theirs: [] };
  for (let round = 0; round < warmUp + rounds; round += 1) {
    const order = round % 2 === 0 ? (['ours', 'theirs'] as const) : (['theirs', 'ours'] as const);
    for (const side of order) results[side].push(await sides[side]());
  }
  return { ours: results.ours.slice(warmUp), theirs: results.theirs.slice(warmUp) };
};
