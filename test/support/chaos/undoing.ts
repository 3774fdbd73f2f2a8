import type { Rewind, StoreChange } from './history.ts';

type Change = Omit<StoreChange, 'revision'>;

/** In one revision, after the last lost one. */
export const undoing = (
  changes: readonly StoreChange[],
  { kept, lost }: Rewind,
): readonly StoreChange[] => {
  const before = new Map<string, Change>();
  const touched = new Map<string, Change>();
  for (const change of changes) {
    const key = keyOf(change);
    if (change.revision <= kept) before.set(key, change);
    else if (change.revision <= lost) touched.set(key, change);
  }
  return [...touched].map(
    ([key, { state: _state, ...gone }]) =>
      ({ ...(before.get(key) ?? gone), revision: lost + 1 }) as StoreChange,
  );
};

export const keyOf = (change: Change & { readonly namespace?: string }): string =>
  `${change.kind} ${change.namespace ?? ''}/${change.name}`;
