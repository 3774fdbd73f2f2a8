export const FOLDERS = ['src/machines', 'src/actors/claim', 'src/redis/lua'] as const;

/** Identifies a mutant in any checkout. */
export interface Change {
  /** From the root of the checkout. */
  readonly file: string;
  /** Such as `ConditionalExpression`. */
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
  /** Without indentation. */
  readonly text: string;
  /** Among equal changes of the file, from 0. */
  readonly nth: number;
}

export interface Mutant extends Change {
  /** Stryker's number; similar for Lua. */
  readonly id: string;
  /** From 1. */
  readonly line: number;
  /** In the file's text. */
  readonly start: number;
  readonly end: number;
}

export const keyOf = ({ file, mutator, original, replacement, text, nth }: Change): string =>
  JSON.stringify([file, mutator, original, replacement, text, nth]);

export const folderOf = ({ file }: Change): string =>
  FOLDERS.find((folder) => file.startsWith(`${folder}/`)) ?? 'others';

interface Place {
  readonly id: string;
  readonly file: string;
  readonly mutator: string;
  readonly replacement: string;
  readonly start: number;
  readonly end: number;
}

export const mutantsAt = (text: string, places: readonly Place[]): readonly Mutant[] => {
  const seen = new Map<string, number>();
  return places.toSorted(inOrder).map((place) => {
    const before = text.slice(0, place.start);
    const [line = ''] = text.slice(before.lastIndexOf('\n') + 1).split('\n');
    const change = { ...place, original: text.slice(place.start, place.end), text: line.trim() };
    const key = keyOf({ ...change, nth: 0 });
    const nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    return { ...change, line: before.split('\n').length, nth };
  });
};

const inOrder = (a: Place, b: Place): number =>
  a.start - b.start || a.end - b.end || a.replacement.localeCompare(b.replacement);

/** In proportion to the folders; the same for the same seed and sources. */
export const sampleOf = (
  mutants: readonly Mutant[],
  count: number,
  seed: number,
): readonly Mutant[] => {
  const most = Math.min(count, mutants.length);
  const parts = FOLDERS.map((folder) => {
    const own = mutants.filter((mutant) => folderOf(mutant) === folder);
    return { own, share: (most * own.length) / mutants.length };
  });
  const sizes = parts.map(({ share }) => Math.floor(share));
  const byRest = parts
    .map(({ share }, place) => ({ place, rest: share - Math.floor(share) }))
    .toSorted((a, b) => b.rest - a.rest);
  const missing = most - sizes.reduce((sum, size) => sum + size, 0);
  for (const { place } of byRest.slice(0, missing)) sizes[place] = (sizes[place] ?? 0) + 1;
  return parts.flatMap(({ own }, place) => shuffled(own, seed + place).slice(0, sizes[place]));
};

/** Each prefix has the folders in proportion. */
export const sampleInTurn = (sample: readonly Mutant[]): readonly Mutant[] =>
  FOLDERS.flatMap((folder) => {
    const own = sample.filter((mutant) => folderOf(mutant) === folder);
    return own.map((mutant, place) => ({ mutant, at: (place + 0.5) / own.length }));
  })
    .toSorted((a, b) => a.at - b.at)
    .map(({ mutant }) => mutant);

const shuffled = <T>(items: readonly T[], seed: number): readonly T[] => {
  const next = numbersOf(seed);
  return items
    .map((item) => ({ item, at: next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
};

/** From 0 to 1, by the seed only (mulberry32). */
const numbersOf = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};
