import type { Expression } from './expression.ts';

export type Labels = Readonly<Record<string, string>>;
export interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}
export interface Recorded {
  readonly labels: Labels;
  /** By time in seconds, the latest last; no value where the series had come to its end. */
  readonly points: { readonly at: number; readonly value: number | undefined }[];
}

type Selector = Extract<Expression, { kind: 'selector' }>;
/** A value that is not followed by another holds for so long. */
const LOOK_BACK_SECONDS = 300;
/** Of a series; what is older goes. */
const MOST_POINTS = 2_000;

/** Series as Prometheus keeps them, in memory: the latest values of each. */
export class RecordedSeries {
  readonly #byName = new Map<string, Map<string, Recorded>>();

  /** Later than all that were added to its series so far. */
  add(
    at: number,
    {
      name,
      labels,
      value,
    }: { readonly name: string; readonly labels: Labels; readonly value: number | undefined },
  ): void {
    const series = this.#byName.get(name) ?? new Map<string, Recorded>();
    this.#byName.set(name, series);
    const key = keyOf(labels);
    const recorded = series.get(key) ?? { labels, points: [] };
    series.set(key, recorded);
    recorded.points.push({ at, value });
    if (recorded.points.length > MOST_POINTS) recorded.points.shift();
  }

  /**
   * One whole scrape of `instance`: what it had before and has no more ends here, all of it where
   * it did not answer.
   */
  scraped(at: number, instance: Labels, samples: readonly Sample[]): void {
    const now = new Set(
      samples.map(({ name, labels }) => `${name} ${keyOf({ ...labels, ...instance })}`),
    );
    for (const [name, series] of this.#byName) {
      for (const { labels, points } of series.values()) {
        const isOf = Object.entries(instance).every(([label, value]) => labels[label] === value);
        if (isOf && points.at(-1)?.value !== undefined && !now.has(`${name} ${keyOf(labels)}`))
          points.push({ at, value: undefined });
      }
    }
    for (const { name, labels, value } of samples)
      this.add(at, { name, labels: { ...labels, ...instance }, value });
  }

  /** What holds at this moment. */
  at(moment: number, selector: Selector): readonly Sample[] {
    return this.#matching(selector).flatMap(({ labels, points }) => {
      const last = points.findLast(({ at }) => at <= moment);
      return last?.value === undefined || last.at <= moment - LOOK_BACK_SECONDS
        ? []
        : [{ name: selector.name, labels, value: last.value }];
    });
  }

  /** What there is of its range up to this moment. */
  within(
    moment: number,
    selector: Selector,
  ): readonly {
    readonly labels: Labels;
    readonly points: readonly { readonly at: number; readonly value: number }[];
  }[] {
    const from = moment - (selector.rangeSeconds ?? 0);
    return this.#matching(selector).map(({ labels, points }) => ({
      labels,
      points: points.flatMap(({ at, value }) =>
        value === undefined || at <= from || at > moment ? [] : [{ at, value }],
      ),
    }));
  }

  #matching({ name, matchers }: Selector): readonly Recorded[] {
    return [...(this.#byName.get(name)?.values() ?? [])].filter(({ labels }) =>
      matchers.every(({ label, matches }) => matches(labels[label] ?? '')),
    );
  }
}

/** The same for the same labels, in whatever order. */
export const keyOf = (labels: Labels): string =>
  JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
