import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { scanCode } from './source-code.ts';

/** Width of lines, size of files, files in one folder. */
const ROOTS = ['src', 'test', 'bench', 'script', 'local-cluster', 'simulation'];
const WIDTH = 100;

interface Source {
  readonly path: string;
  readonly lines: readonly string[];
}

const sourcesOf = (root: string): readonly Source[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.includes('generated/'))
    .map((path) => ({
      path: join(root, path),
      lines: readFileSync(join(root, path), 'utf8').split('\n').slice(0, -1),
    }));

const widthOf = (sources: readonly Source[]): string => {
  const filled = sources
    .flatMap(({ lines }) => lines)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return (filled.reduce((sum, line) => sum + line.length, 0) / filled.length).toFixed(1);
};

/** Members of types count too. */
const statementsOf = (sources: readonly Source[]): number =>
  sources.reduce(
    (sum, { lines }) => sum + scanCode(lines.join('\n')).codeOnly.split(';').length - 1,
    0,
  );

const wideOf = (sources: readonly Source[]): number =>
  sources.flatMap(({ lines }) => lines).filter((line) => line.length > WIDTH).length;

const fullest = (sources: readonly Source[]): readonly [string, number] => {
  const counts = new Map<string, number>();
  for (const { path } of sources) {
    const folder = dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0] ?? ['', 0];
};

const generatedKilobytes = (): number =>
  Math.round(
    execFileSync('git', ['ls-files', 'src/**/generated/*.ts'], { encoding: 'utf8' })
      .split('\n')
      .filter((path) => path !== '')
      .reduce((sum, path) => sum + statSync(path).size, 0) / 1_024,
  );

const src = sourcesOf('src');
const all = ROOTS.flatMap(sourcesOf);
const [room, files] = fullest(src);
const rows: readonly (readonly [string, string | number])[] = [
  ['characters of a line that is not blank, without its indent, src', widthOf(src)],
  [`lines over ${WIDTH} characters, src`, wideOf(src)],
  [`lines over ${WIDTH} characters, everywhere`, wideOf(all)],
  ['files, src', src.length],
  ['statements, src', statementsOf(src)],
  ['statements, everywhere', statementsOf(all)],
  ['lines, src', src.reduce((sum, { lines }) => sum + lines.length, 0)],
  ['files of 20 lines and fewer, src', src.filter(({ lines }) => lines.length <= 20).length],
  ['kilobytes of generated TypeScript, src', generatedKilobytes()],
  [`most files in one folder (${room})`, files],
];
for (const [name, value] of rows) console.log(`${String(value).padStart(8)}  ${name}`);
