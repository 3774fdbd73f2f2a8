type Labels = Readonly<Record<string, string>>;

/** Values of the label that stays. */
const MOST_OTHERS = 40;

/**
 * Limits the label combinations of a metric: all after the first ones become `other`. If a label
 * stays, each of its values has its own `other`, so clients that exhaust the limit can't hide the
 * series of an alert.
 */
export class SeriesBound {
  readonly #names: readonly string[];
  readonly #most: number;
  readonly #other: Labels;
  readonly #stays: string | undefined;
  readonly #others = new Map<string, Labels>();
  readonly #known = new Map<string, Labels>();

  constructor(names: readonly string[], most: number, stays?: string) {
    this.#names = names;
    this.#most = most;
    this.#stays = stays;
    this.#other = Object.fromEntries(names.map((name) => [name, 'other']));
  }

  of(labels: Labels): Labels {
    let key = '';
    for (const name of this.#names) key += `${labels[name] ?? ''}\n`;
    const known = this.#known.get(key);
    if (known) return known;
    if (this.#known.size >= this.#most) return this.#otherOf(labels);
    this.#known.set(key, labels);
    return labels;
  }

  forget(): void {
    this.#known.clear();
  }

  #otherOf(labels: Labels): Labels {
    const value = this.#stays === undefined ? undefined : labels[this.#stays];
    if (this.#stays === undefined || value === undefined) return this.#other;
    const known = this.#others.get(value);
    if (known || this.#others.size >= MOST_OTHERS) return known ?? this.#other;
    const other = { ...this.#other, [this.#stays]: value };
    this.#others.set(value, other);
    return other;
  }
}
