import type { CounterName, GaugeName, HistogramName, LabelsOf } from './metric-catalogue.ts';

export interface Sample<Name extends CounterName | GaugeName> {
  readonly labels: LabelsOf<Name>;
  readonly value: number;
}

/**
 * Methods never reject, throw, wait or do I/O; each costs a microsecond or two. Values that the
 * daemon already knows are read on demand instead of counted.
 */
export interface Metrics {
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, seconds: number): void;
  /** Called at each scrape, so `read` must be quick. Several readers of one metric add up. */
  read<Name extends CounterName | GaugeName>(name: Name, read: () => Iterable<Sample<Name>>): void;
}

export const silentMetrics: Metrics = {
  count: () => undefined,
  observe: () => undefined,
  read: () => undefined,
};
