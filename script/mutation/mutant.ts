/** The folders whose mutants are counted. */
export const FOLDERS = ['src/machines', 'src/actors/claim', 'src/redis/lua'] as const;

/** Identifies a mutant in any checkout. */
export interface Change {
  /** From the root of the checkout. */
  readonly file: string;
  /** The mutator's name, such as `ConditionalExpression`. */
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
  /** First changed line, trimmed. */
  readonly text: string;
  /** Which of the equal changes of the file, from 0 on. */
  readonly nth: number;
}

/** A mutant of one checkout. */
export interface Mutant extends Change {
  /** Stryker's number; for Lua a name of the same kind. */
  readonly id: string;
  /** From 1 on. */
  readonly line: number;
  /** Offsets in the file's text. */
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

/** Completes places of one text: with the line of each, and its number among equal changes. */
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

/**
 * Draws `count` mutants: of each folder as large a part as of all, and the same for the same seed
 * and sources.
 */
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

/** The mutants in an order in which each first part has of each folder what the whole has. */
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

/** Numbers from 0 to 1 that the seed alone decides (mulberry32). */
const numbersOf = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};
