import { inShort, median } from './statistics.ts';

export interface Measure {
  readonly name: string;
  readonly unit: string;
  readonly ours: readonly number[];
  /** Absent without a comparison. */
  readonly theirs?: readonly number[];
  readonly better: 'less' | 'more';
  /** Bound for the ratio ours/theirs, or else for ours. A row without it is not judged. */
  readonly reach?: number;
  readonly beyond?: number;
}

type Verdict = 'beyond' | 'reached' | 'missed' | '-';

/** In milliseconds, less is better, unless `row` says otherwise. */
export const rowOf = <T>(
  row: Partial<Measure> & Pick<Measure, 'name'>,
  { ours, theirs }: { readonly ours: readonly T[]; readonly theirs?: readonly T[] },
  of: (sample: T) => number,
): Measure => ({
  unit: 'ms',
  better: 'less',
  ...row,
  ours: ours.map(of),
  ...(theirs && { theirs: theirs.map(of) }),
});

const judgedOf = ({ ours, theirs }: Measure): readonly number[] =>
  theirs ? ours.map((value, round) => value / (theirs[round] ?? Number.NaN)) : ours;

const verdictOf = (measure: Measure): Verdict => {
  const { better, reach, beyond } = measure;
  if (reach === undefined) return '-';
  const value = median(judgedOf(measure));
  const meets = (mark: number): boolean => (better === 'less' ? value <= mark : value >= mark);
  if (beyond !== undefined && meets(beyond)) return 'beyond';
  return meets(reach) ? 'reached' : 'missed';
};

const COLUMNS = [
  'figure',
  'ours',
  'theirs',
  'ratio (min-max)',
  'reach',
  'beyond',
  'verdict',
] as const;

/** With aligned columns. */
export const tableOf = (measures: readonly Measure[]): string => {
  const rows = [COLUMNS, COLUMNS.map(() => '---'), ...measures.map(cellsOf)];
  const widths = COLUMNS.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`)
    .join('\n');
};

const cellsOf = (measure: Measure): readonly string[] => {
  const { name, unit, ours, theirs, reach, beyond } = measure;
  return [
    name,
    theirs
      ? `${inShort(median(ours))} ${unit}`
      : `${inShort(median(ours))} ${unit} (${spread(ours)})`,
    theirs ? `${inShort(median(theirs))} ${unit}` : '',
    theirs ? `${median(judgedOf(measure)).toFixed(2)} (${spread(judgedOf(measure))})` : '',
    reach === undefined ? '' : String(reach),
    beyond === undefined ? '' : String(beyond),
    verdictOf(measure),
  ];
};

const spread = (values: readonly number[]): string =>
  `${inShort(Math.min(...values))}-${inShort(Math.max(...values))}`;
