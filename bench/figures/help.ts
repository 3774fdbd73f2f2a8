import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { inPairs, type Figure } from '../figure.ts';
import { median } from '../statistics.ts';

const STARTS = 20;
const HELP = ['bin/sandpool', '--help'];
/** What no program in Node can do without. */
const NOTHING = ['--eval', '0'];

export const help: Figure = {
  name: 'help',
  about: 'a fresh process of `sandpool --help`, against one of Node that does nothing',
  run: async (bench) => {
    const of = (args: readonly string[]) => async (): Promise<number> => {
      const times: number[] = [];
      for (let start = 0; start < STARTS; start += 1) times.push(await timeOf(args));
      return median(times);
    };
    await timeOf(HELP); // from then on its files are in memory
    const { ours, theirs } = await inPairs(bench, { ours: of(HELP), theirs: of(NOTHING) });
    return [
      { name: '`sandpool --help`, cold', unit: 'ms', better: 'less', reach: 150, beyond: 80, ours },
      { name: 'the same, against Node alone', unit: 'ms', better: 'less', ours, theirs },
    ];
  },
};

/** From the start of the process until all that it wrote was read, in ms. */
const timeOf = async (args: readonly string[]): Promise<number> => {
  const began = performance.now();
  const child = spawn(process.execPath, [...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'] ?? '' },
  });
  child.stdout.resume();
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${String(code)}`);
  return performance.now() - began;
};
