import type { Summary } from './journal.ts';

export interface Row {
  readonly scenario: string;
  readonly mode: string;
  readonly wait: number;
  readonly summaries: readonly Summary[];
}

/** One line a scenario and mode, averaged over its seeds, as Markdown. */
export const tableOf = (rows: readonly Row[]): string => {
  const cells = rows.map(({ scenario, mode, wait, summaries }) => {
    const mean = (of: (summary: Summary) => number): number =>
      summaries.reduce((sum, summary) => sum + of(summary), 0) / summaries.length;
    const recoveries = summaries.flatMap(({ recoveriesMs }) => recoveriesMs).sort((a, b) => a - b);
    return [
      scenario,
      mode,
      wait > 0 ? `${wait} s` : '–',
      mean(({ claims }) => claims).toFixed(0),
      `${(
        (100 * mean(({ refused }) => refused)) /
        Math.max(
          1,
          mean(({ claims }) => claims),
        )
      ).toFixed(1)} %`,
      mean(({ idleOnAverage }) => idleOnAverage).toFixed(1),
      mean(({ idleHours }) => idleHours).toFixed(0),
      mean(({ runningOnAverage }) => runningOnAverage).toFixed(1),
      mean(({ decisions }) => decisions).toFixed(0),
      mean(({ flips }) => flips).toFixed(0),
      secondsAt(recoveries, 0.5),
      secondsAt(recoveries, 1),
    ];
  });
  const all = [HEADS, ...cells];
  const widths = HEADS.map((_, column) =>
    Math.max(...all.map((line) => line[column]?.length ?? 0)),
  );
  const lineOf = (line: readonly string[]): string =>
    `| ${line.map((cell, column) => (column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`;
  return [
    lineOf(HEADS),
    `|${widths.map((width, column) => (column < 2 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`,
    ...cells.map(lineOf),
  ].join('\n');
};

const HEADS = [
  'scenario',
  'mode',
  'waits',
  'claims',
  'refused',
  'idle',
  'idle hours',
  'running',
  'decisions',
  'flips',
  'recovery',
  'longest',
];

const secondsAt = (sorted: readonly number[], share: number): string => {
  const moment = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return moment === undefined ? '–' : `${(moment / 1_000).toFixed(0)} s`;
};
