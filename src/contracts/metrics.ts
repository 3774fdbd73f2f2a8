import type { CounterName, GaugeName, HistogramName, LabelsOf } from './metric-catalogue.ts';

/** One series as it stands. */
export interface Sample<Name extends CounterName | GaugeName> {
  readonly labels: LabelsOf<Name>;
  readonly value: number;
}

/**
 * Counts what the daemon does. None of it rejects or throws, waits or does I/O; each costs a
 * microsecond or two. What is known anyway is not counted again but read when somebody asks.
 * Deliberately absent: gauges that are set, labels that are not in the catalogue.
 */
export interface Metrics {
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  /** Into a histogram. */
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, seconds: number): void;
  /**
   * Reads the series anew each time that somebody asks; several readers of one metric add to each
   * other. Takes little time, or is asked for less.
   */
  read<Name extends CounterName | GaugeName>(name: Name, read: () => Iterable<Sample<Name>>): void;
}

/** Nobody listens. */
export const silentMetrics: Metrics = {
  count: () => undefined,
  observe: () => undefined,
  read: () => undefined,
};
