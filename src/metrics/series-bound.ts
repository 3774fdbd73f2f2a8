type Labels = Readonly<Record<string, string>>;

/** Tells so many combinations of labels apart, the first ones; all others are one, `other`. */
export class SeriesBound {
  readonly #names: readonly string[];
  readonly #most: number;
  readonly #other: Labels;
  readonly #known = new Map<string, Labels>();

  constructor(names: readonly string[], most: number) {
    this.#names = names;
    this.#most = most;
    this.#other = Object.fromEntries(names.map((name) => [name, 'other']));
  }

  of(labels: Labels): Labels {
    let key = '';
    for (const name of this.#names) key += `${labels[name] ?? ''}\n`;
    const known = this.#known.get(key);
    if (known) return known;
    if (this.#known.size >= this.#most) return this.#other;
    this.#known.set(key, labels);
    return labels;
  }

  /** Of what is read anew. */
  forget(): void { this.#known.clear(); }
}
