import { type Change, FOLDERS, folderOf, type Mutant } from './mutant.ts';
import type { Verdict } from './trial.ts';

export type Tried = Mutant & Verdict & { readonly ms: number };

const COLUMNS = ['caught', 'timed out', 'survived', 'no coverage'] as const;
const MOST_SHOWN = 100;

export const shownMutant = ({ file, line, mutator, original, replacement }: Mutant): string =>
  `${file}:${line} ${mutator}: ${short(original)} -> ${short(replacement)}`;

const short = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ');
  return `\`${line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN)} …` : line}\``;
};

export const report = (
  all: readonly Mutant[],
  tried: readonly Tried[],
  gone: readonly Change[],
): string =>
  [
    '',
    row('', 'of', 'tried', ...COLUMNS, 'caught or late'),
    ...[...FOLDERS, undefined].map((folder) => {
      const isOf = (mutant: Change): boolean => folder === undefined || folderOf(mutant) === folder;
      const own = tried.filter(isOf);
      const counts = COLUMNS.map((status) => own.filter((each) => each.status === status).length);
      const [caught = 0, late = 0] = counts;
      const share =
        own.length === 0 ? '' : `${((100 * (caught + late)) / own.length).toFixed(1)} %`;
      const numbers = [all.filter(isOf).length, own.length, ...counts].map(String);
      return row(folder ?? 'all', ...numbers, share);
    }),
    ...listed(tried, 'survived'),
    ...listed(tried, 'no coverage'),
    ...(gone.length === 0 ? [] : ['', 'not in this code any more:']),
    ...gone.map(({ file, mutator, text }) => `${file} ${mutator}: ${text}`),
  ].join('\n');

const row = (first: string, ...cells: readonly string[]): string =>
  first.padEnd(22) + cells.map((cell) => cell.padStart(Math.max(8, cell.length + 2))).join('');

const listed = (tried: readonly Tried[], status: Verdict['status']): readonly string[] => {
  const own = tried
    .filter((each) => each.status === status)
    .toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line);
  const shown = (each: Tried): string =>
    shownMutant(each) + (each.quick ? ' (quick tests alone)' : '');
  return own.length === 0 ? [] : ['', `${status}:`, ...own.map(shown)];
};
