import type { Load } from './load.ts';
import type { Measure } from './measure.ts';

export interface Bench {
  readonly load: Load;
  /** A row is their median. */
  readonly rounds: number;
  /** For the compared side; removed at the end. */
  readonly folder: string;
  readonly say: (text: string) => void;
}

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
 * Alternates which side goes first. Does not count `warmUp` rounds, in which the code is compiled.
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
