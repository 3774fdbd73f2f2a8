interface Counted<Kind extends string> {
  readonly kind: Kind;
  readonly most: number;
  readonly taken: Map<string, number>;
}

/**
 * Counts what is under way, by a key of each kind, up to a limit of each kind: of one sandbox and
 * of one tenant, for instance. Nobody waits; FairSlots has those who do.
 */
export class Permits<Kind extends string> {
  readonly #kinds: readonly Counted<Kind>[];

  /** `most`: the limits, in the order in which they are looked at. */
  constructor(most: Readonly<Record<Kind, number>>) {
    this.#kinds = (Object.entries(most) as [Kind, number][]).map(([kind, limit]) => ({
      kind,
      most: limit,
      taken: new Map<string, number>(),
    }));
  }

  /** Returns the first kind whose key has as many as it may, with that limit; undefined: none. */
  full(keys: Readonly<Record<Kind, string>>): Pick<Counted<Kind>, 'kind' | 'most'> | undefined {
    return this.#kinds.find(({ kind, most, taken }) => (taken.get(keys[kind]) ?? 0) >= most);
  }

  /**
   * Takes one permit of each kind. Returns what gives them back; repeated calls of that do nothing.
   * Takes none, and throws what `refuse` makes, if one kind is full.
   */
  take(
    keys: Readonly<Record<Kind, string>>,
    refuse: (kind: Kind, most: number) => Error,
  ): () => void {
    const full = this.full(keys);
    if (full) throw refuse(full.kind, full.most);
    for (const { kind, taken } of this.#kinds)
      taken.set(keys[kind], (taken.get(keys[kind]) ?? 0) + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      for (const { kind, taken } of this.#kinds) giveBack(taken, keys[kind]);
    };
  }
}

const giveBack = (taken: Map<string, number>, key: string): void => {
  const left = (taken.get(key) ?? 1) - 1;
  if (left > 0) taken.set(key, left);
  else taken.delete(key);
};
