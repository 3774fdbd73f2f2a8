interface Counted<Kind extends string> {
  readonly kind: Kind;
  readonly most: number;
  readonly taken: Map<string, number>;
}

/**
 * By keys of several kinds, such as sandbox and tenant. Callers never wait; use FairSlots for that.
 */
export class Permits<Kind extends string> {
  readonly #kinds: readonly Counted<Kind>[];

  /** In the order of their checks. */
  constructor(most: Readonly<Record<Kind, number>>) {
    this.#kinds = (Object.entries(most) as [Kind, number][]).map(([kind, limit]) => ({
      kind,
      most: limit,
      taken: new Map<string, number>(),
    }));
  }

  /** Undefined if all have permits left. */
  full(keys: Readonly<Record<Kind, string>>): Pick<Counted<Kind>, 'kind' | 'most'> | undefined {
    return this.#kinds.find((counted) => isFull(counted, keys[counted.kind]));
  }

  isFull(kind: Kind, key: string): boolean {
    return this.#kinds.some((counted) => counted.kind === kind && isFull(counted, key));
  }

  /**
   * One of each kind. The returned function is idempotent. If one kind is full, takes none and
   * throws the error from `refuse`.
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

const isFull = ({ most, taken }: Counted<string>, key: string): boolean =>
  (taken.get(key) ?? 0) >= most;

const giveBack = (taken: Map<string, number>, key: string): void => {
  const left = (taken.get(key) ?? 1) - 1;
  if (left > 0) taken.set(key, left);
  else taken.delete(key);
};
