import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { endLiving } from './daemon.ts';
import type { Bench, Figure } from './figure.ts';
import { claim } from './figures/claim.ts';
import { conventions } from './figures/conventions.ts';
import { endpoint } from './figures/endpoint.ts';
import { exec } from './figures/exec.ts';
import { fill } from './figures/fill.ts';
import { growth } from './figures/growth.ts';
import { help } from './figures/help.ts';
import { image } from './figures/image.ts';
import { list } from './figures/list.ts';
import { loop } from './figures/loop.ts';
import { memory } from './figures/memory.ts';
import { neighbours } from './figures/neighbours.ts';
import { overload } from './figures/overload.ts';
import { slow } from './figures/slow.ts';
import { throughput } from './figures/throughput.ts';
import { Load } from './load.ts';
import { tableOf, type Measure } from './measure.ts';
import { removeTemporaryFolder, removeTemporaryFolders, temporaryFolder } from './temporary-folder.ts';

const FIGURES: readonly Figure[] = [
  claim, throughput, fill, exec, loop, memory, neighbours, growth, image, endpoint, help, conventions, list, overload, slow,
];
const ROUNDS = 5;
const FIGURE_DEADLINE_MS = 300_000;

/** A figure that can't be measured is reported, and the others go on. */
const run = async (figures: readonly Figure[], rounds: number): Promise<readonly Measure[]> => {
  const say = (text: string): void => { process.stderr.write(`${text}\n`); };
  const bench: Bench = { load: new Load(), rounds, folder: temporaryFolder(), say };
  const measures: Measure[] = [];
  try {
    for (const figure of figures) {
      say(`${figure.name}: ${figure.about}`);
      const began = performance.now();
      try {
        const found = await withinTime(figure.run(bench));
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
    await bench.load.stop();
    removeTemporaryFolder(bench.folder);
  }
};

/** Rejects when a figure takes far longer than it should: then something hangs. */
const withinTime = async <T>(work: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => { timer = setTimeout(() => reject(new Error('it takes too long')), FIGURE_DEADLINE_MS); });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
};

const interrupt = (signal: NodeJS.Signals): void => {
  process.stderr.write(`${signal}: the daemons and sandboxes of this measurement are ended\n`);
  void endLiving().catch(() => undefined).then(removeTemporaryFolders).finally(() => process.exit(1));
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: String(ROUNDS) } },
});
const unknown = positionals.filter((name) => !FIGURES.some((figure) => figure.name === name));
const rounds = Number(values.rounds);
if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
  process.stderr.write(unknown.length === 0 ? '--rounds takes a number from 1 to 100\n'
    : `there is no figure ${unknown.join(', ')}; there are\n${FIGURES.map(({ name, about }) => `  ${name.padEnd(12)}${about}\n`).join('')}`);
  process.exitCode = 2;
} else {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt);
  const measures = await run(FIGURES.filter(({ name }) => positionals.length === 0 || positionals.includes(name)), rounds);
  process.stdout.write(`\n${tableOf(measures)}\n\n${availableParallelism()} processors, Node ${process.version}, ${rounds} rounds\n`, () => process.exit());
}
