import type {
  CounterName,
  GaugeName,
  HistogramName,
  LabelsOf,
  MetricName,
} from '../../../src/contracts/metric-catalogue.ts';
import type { Metrics, Sample } from '../../../src/contracts/metrics.ts';

export class MemoryMetrics implements Metrics {
  readonly #counts = new Map<string, number>();
  readonly #observed = new Map<string, number[]>();
  readonly #readers = new Map<
    string,
    (() => Iterable<{
      readonly labels: Readonly<Record<string, string>>;
      readonly value: number;
    }>)[]
  >();

  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    this.#counts.set(keyOf(name, labels), this.counted(name, labels) + by);
  }

  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, seconds: number): void {
    this.#observed.set(keyOf(name, labels), [...this.observed(name, labels), seconds]);
  }

  read<Name extends CounterName | GaugeName>(name: Name, read: () => Iterable<Sample<Name>>): void {
    this.#readers.set(name, [...(this.#readers.get(name) ?? []), read]);
  }

  counted<Name extends CounterName>(name: Name, labels: LabelsOf<Name>): number {
    return this.#counts.get(keyOf(name, labels)) ?? 0;
  }

  observed<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>): readonly number[] {
    return this.#observed.get(keyOf(name, labels)) ?? [];
  }

  /** Undefined without such a series. */
  shown<Name extends CounterName | GaugeName>(
    name: Name,
    labels: LabelsOf<Name>,
  ): number | undefined {
    for (const read of this.#readers.get(name) ?? [])
      for (const sample of read())
        if (keyOf(name, sample.labels) === keyOf(name, labels)) return sample.value;
    return undefined;
  }
}

const keyOf = (name: MetricName, labels: Readonly<Record<string, string>>): string =>
  `${name} ${Object.keys(labels)
    .toSorted()
    .map((label) => `${label}=${labels[label]}`)
    .join()}`;
