import type { Load } from './load.ts';
import type { Measure } from './measure.ts';

export interface Bench {
  readonly load: Load;
  /** A row of figures is the median of so many rounds, ours and theirs in turn in each. */
  readonly rounds: number;
  /** Where databases of the compared servers lie; removed at the end. */
  readonly folder: string;
  readonly say: (text: string) => void;
}

/** Something that is measured; one or more rows of the table. */
export interface Figure {
  readonly name: string;
  readonly about: string;
  readonly run: (bench: Bench) => Promise<readonly Measure[]>;
}

/**
 * Runs both sides in each round, in turn, and the other one first in every second round. `before`
 * runs ahead of each side and isn't measured.
 */
export const inPairs = async <T>(
  bench: Bench,
  sides: { readonly ours: () => Promise<T>; readonly theirs: () => Promise<T> },
): Promise<{ ours: T[]; theirs: T[] }> => {
  const results: { ours: T[]; theirs: T[] } = { ours: [], theirs: [] };
  for (let round = 0; round < bench.rounds; round += 1) {
    const order = round % 2 === 0 ? (['ours', 'theirs'] as const) : (['theirs', 'ours'] as const);
    for (const side of order) results[side].push(await sides[side]());
  }
  return results;
};
