import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import {
  METRICS,
  type CounterName,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  type MetricSpec,
} from '../../contracts/metric-catalogue.ts';
import type { Metrics, Sample } from '../../contracts/metrics.ts';
import { SeriesBound } from './series-bound.ts';

type Labels = Readonly<Record<string, string>>;
type Reader = () => Iterable<{ readonly labels: Labels; readonly value: number }>;

export class PrometheusMetrics implements Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<string, Counter>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #readers = new Map<string, Reader[]>();
  readonly #bounds = new Map<string, SeriesBound>();
  #text: Promise<string> | undefined;

  constructor() {
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: 20 });
    for (const [name, spec] of Object.entries<MetricSpec>(METRICS)) {
      this.#bounds.set(name, new SeriesBound(spec.labels, spec.most, spec.stays));
      if (spec.kind === 'histogram') this.#addHistogram(name, spec);
      else if (spec.kind === 'counter') this.#addCounter(name, spec);
      else this.#addGauge(name, spec);
    }
  }

  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    this.#counters.get(name)?.inc(this.#bounded(name, labels), by);
  }

  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, seconds: number): void {
    this.#histograms.get(name)?.observe(this.#bounded(name, labels), seconds);
  }

  read<Name extends CounterName | GaugeName>(name: Name, read: () => Iterable<Sample<Name>>): void {
    this.#readers.set(name, [...(this.#readers.get(name) ?? []), read]);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Concurrent calls share one result. */
  text(): Promise<string> {
    this.#text ??= this.#registry.metrics().finally(() => {
      this.#text = undefined;
    });
    return this.#text;
  }

  #bounded(name: string, labels: Labels): Labels {
    return this.#bounds.get(name)?.of(labels) ?? labels;
  }

  #addCounter(name: string, { help, labels, known = [] }: MetricSpec): void {
    const readAnew = (metric: Counter): void => {
      const readers = this.#readers.get(name);
      if (!readers) return;
      metric.reset();
      this.#bounds.get(name)?.forget();
      for (const read of readers)
        for (const sample of read()) metric.inc(this.#bounded(name, sample.labels), sample.value);
    };
    const metric: Counter = new Counter({
      name,
      help,
      labelNames: [...labels],
      registers: [this.#registry],
      collect() {
        readAnew(this);
      },
    });
    this.#counters.set(name, metric);
    for (const value of known)
      for (const label of labels) metric.inc(this.#bounded(name, { [label]: value }), 0);
  }

  #addGauge(name: string, { help, labels }: MetricSpec): void {
    const readAnew = (metric: Gauge): void => {
      metric.reset();
      this.#bounds.get(name)?.forget();
      const readers = this.#readers.get(name) ?? [];
      if (readers.length === 0 && labels.length === 0) metric.remove(); // or it would read 0
      for (const read of readers)
        for (const sample of read()) metric.inc(this.#bounded(name, sample.labels), sample.value);
    };
    new Gauge({
      name,
      help,
      labelNames: [...labels],
      registers: [this.#registry],
      collect() {
        readAnew(this);
      },
    });
  }

  #addHistogram(name: string, { help, labels, buckets = [] }: MetricSpec): void {
    this.#histograms.set(
      name,
      new Histogram({
        name,
        help,
        labelNames: [...labels],
        buckets: [...buckets],
        registers: [this.#registry],
      }),
    );
  }
}
