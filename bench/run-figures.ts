import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Bench, Figure } from './figure.ts';
import { Load } from './load.ts';
import { tableOf, type Measure } from './measure.ts';
import {
  removeTemporaryFolder,
  removeTemporaryFolders,
  temporaryFolder,
} from './temporary-folder.ts';

const ROUNDS = 5;

export interface Terms {
  readonly figures: readonly Figure[];
  readonly arguments: readonly string[];
  readonly deadlineMs: number;
  /** Ends what figures left; may be repeated. */
  readonly endLiving: () => Promise<void>;
}

/** All figures unless the arguments name some. Then the process ends. */
export const runFigures = async ({ figures, arguments: args, ...terms }: Terms): Promise<void> => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { rounds: { type: 'string', default: String(ROUNDS) } },
  });
  const unknown = positionals.filter((asked) => !figures.some((figure) => isMeant(figure, asked)));
  const rounds = Number(values.rounds);
  if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
    process.stderr.write(
      unknown.length === 0
        ? '--rounds takes a number from 1 to 100\n'
        : `there is no figure ${unknown.join(', ')}; there are\n${figures.map(({ name, about }) => `  ${name.padEnd(22)}${about}\n`).join('')}`,
    );
    process.exitCode = 2;
    return;
  }
  const interrupt = (signal: NodeJS.Signals): void => {
    process.stderr.write(`${signal}: what this measurement started is ended\n`);
    void terms
      .endLiving()
      .catch(() => undefined)
      .then(removeTemporaryFolders)
      .finally(() => process.exit(1));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt);
  const measures = await run(
    figures.filter(
      (figure) => positionals.length === 0 || positionals.some((asked) => isMeant(figure, asked)),
    ),
    rounds,
    terms,
  );
  process.stdout.write(
    `\n${tableOf(measures)}\n\n${availableParallelism()} processors, Node ${process.version}, ${rounds} rounds\n`,
    () => process.exit(),
  );
};

/** `neighbours` means all of `neighbours:…`. */
const isMeant = ({ name }: Figure, asked: string): boolean =>
  name === asked || name.startsWith(`${asked}:`);

const run = async (
  figures: readonly Figure[],
  rounds: number,
  { deadlineMs, endLiving }: Pick<Terms, 'deadlineMs' | 'endLiving'>,
): Promise<readonly Measure[]> => {
  const say = (text: string): void => {
    process.stderr.write(`${text}\n`);
  };
  await using load = new Load();
  const bench: Bench = { load, rounds, folder: temporaryFolder(), say };
  const measures: Measure[] = [];
  try {
    for (const figure of figures) {
      say(`${figure.name}: ${figure.about}`);
      const began = performance.now();
      try {
        const found = await withinTime(figure.run(bench), deadlineMs);
        measures.push(...found);
        say(`\n${tableOf(found)}\n`);
        say(`${figure.name}: done in ${Math.round((performance.now() - began) / 1_000)} s`);
      } catch (error) {
        process.exitCode = 1;
        say(`${figure.name}: failed: ${error instanceof Error ? error.stack : String(error)}`);
        await endLiving();
      }
    }
    return measures;
  } finally {
    removeTemporaryFolder(bench.folder);
  }
};

/** Rejects if something hangs. */
const withinTime = async <T>(work: Promise<T>, deadlineMs: number): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it takes too long')), deadlineMs);
  });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
};
