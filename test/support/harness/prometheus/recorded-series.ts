import type { Expression } from './expression.ts';

export type Labels = Readonly<Record<string, string>>;
export interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}
export interface Recorded {
  readonly labels: Labels;
  /** By time in seconds, latest last; no value marks the end of the series. */
  readonly points: { readonly at: number; readonly value: number | undefined }[];
}

type Selector = Extract<Expression, { kind: 'selector' }>;
/** A value without a successor holds this long. */
const LOOK_BACK_SECONDS = 300;
/** Per series; older ones go. */
const MOST_POINTS = 2_000;

/** The latest values of each series, in memory. */
export class RecordedSeries {
  readonly #byName = new Map<string, Map<string, Recorded>>();

  /** Must be later than the series' other points. */
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

  /** A scrape of `instance`. Series missing in it end; all do if it did not answer. */
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

  at(moment: number, selector: Selector): readonly Sample[] {
    return this.#matching(selector).flatMap(({ labels, points }) => {
      const last = points.findLast(({ at }) => at <= moment);
      return last?.value === undefined || last.at <= moment - LOOK_BACK_SECONDS
        ? []
        : [{ name: selector.name, labels, value: last.value }];
    });
  }

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

/** Independent of the labels' order. */
export const keyOf = (labels: Labels): string =>
  JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
