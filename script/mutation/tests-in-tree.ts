/**
 * Run by script/mutation/test-run.ts as `node tests-in-tree.js ORDER RESULT`, both files of JSON.
 */
import childProcess, { type ChildProcess } from 'node:child_process';
import crypto from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join, relative } from 'node:path';
import Mocha from 'mocha';

export interface Order {
  /** TypeScript, from the root of the tree. */
  readonly files: readonly string[];
  /** By file; all tests of a file that is not named. */
  readonly chosen: Readonly<Record<string, readonly string[]>>;
  readonly without: readonly string[];
  /** In ms, by title. */
  readonly limits: Readonly<Record<string, number>>;
  /** Stryker's number of the active one. */
  readonly mutant?: string;
  readonly bail: boolean;
}

export interface Result {
  readonly passed: readonly { readonly title: string; readonly ms: number }[];
  readonly failed: readonly Failure[];
  readonly skipped: number;
  /** While files were loaded, or in hooks before all tests. */
  readonly atLoad: readonly string[];
  readonly inHooks: readonly string[];
  /** By title. */
  readonly byTest: Readonly<Record<string, readonly string[]>>;
  /** `FILE:OFFSET` in Redis' scripts by title; '' in hooks. */
  readonly blocks: Readonly<Record<string, readonly string[]>>;
}

export interface Failure {
  readonly title: string;
  /** For a failed hook. */
  readonly test?: string;
  readonly error: string;
  readonly late: boolean;
}

interface Coverage {
  readonly static: Record<string, number>;
  readonly perTest: Record<string, Record<string, number>>;
}
interface Stryker {
  activeMutant?: string;
  currentTestId?: string;
  mutantCoverage?: Coverage;
}

const stryker: Stryker = {};
let redises = 0;
const blocks = new Map<string, Set<string>>();

const main = async (orderFile: string, resultFile: string): Promise<void> => {
  const order = JSON.parse(readFileSync(orderFile, 'utf8')) as Order;
  Object.assign(globalThis, { __stryker__: stryker });
  if (order.mutant !== undefined) stryker.activeMutant = order.mutant;
  sameCases();
  watchRedis();
  syncBuiltinESMExports();

  const mocha = new Mocha({ timeout: 60_000, bail: order.bail, rootHooks });
  mocha.reporter(Mocha.reporters.Base); // silent
  for (const file of order.files) mocha.addFile(join(process.cwd(), file.replace(/ts$/, 'js')));
  await mocha.loadFilesAsync();
  const atLoad = covered();
  choose(mocha.suite, order);

  const passed: { title: string; ms: number }[] = [];
  const failed: Failure[] = [];
  let skipped = 0;
  const runner = mocha.run(() => {
    const byTest = Object.entries(stryker.mutantCoverage?.perTest ?? {}).map(
      ([title, met]): [string, string[]] => [title, Object.keys(met)],
    );
    const result: Result = {
      ...{ passed, failed, skipped, atLoad },
      blocks: Object.fromEntries([...blocks].map(([title, met]) => [title, [...met]])),
      inHooks: covered().filter((id) => !atLoad.includes(id)),
      byTest: Object.fromEntries(byTest),
    };
    writeFileSync(resultFile, JSON.stringify(result));
    process.exit(0); // a mutant may leave things open
  });
  runner.on('pass', (test) => passed.push({ title: test.fullTitle(), ms: test.duration ?? 0 }));
  runner.on('pending', () => (skipped += 1));
  runner.on('fail', (test, error: Error & { readonly code?: string }) => {
    const meant = test.ctx?.currentTest?.fullTitle();
    failed.push({
      title: test.fullTitle(),
      test: meant === undefined || meant === test.fullTitle() ? undefined : meant,
      error: String(error.message).slice(0, 300),
      late: error.code === 'ERR_MOCHA_TIMEOUT' || /\bnot within\b/.test(error.message),
    });
  });
};

const covered = (): readonly string[] => Object.keys(stryker.mutantCoverage?.static ?? {});

const rootHooks: Mocha.RootHookObject = {
  beforeEach(this: Mocha.Context) {
    stryker.currentTestId = this.currentTest?.fullTitle();
  },
  async afterEach() {
    if (redises > 0) await logged();
    stryker.currentTestId = undefined;
  },
};

/** They count cases, in vain where few are tried. */
const COUNTS = /\bcovers? enough\b/;

/** Redis logs a block before it answers. */
const logged = async (): Promise<void> => {
  for (let turns = 0; turns < 3; turns += 1)
    await new Promise<void>((resolve) => void setTimeout(resolve, 1));
};

const choose = (suite: Mocha.Suite, order: Order): void => {
  const { chosen, without, limits } = order;
  const few = Number(process.env['TEST_RUNS'] ?? 1) < 1;
  suite.tests = suite.tests.filter((test) => {
    const title = test.fullTitle();
    const file = relative(process.cwd(), test.file ?? '').replace(/js$/, 'ts');
    if (without.includes(title) || (few && COUNTS.test(title))) return false;
    return chosen[file]?.includes(title) ?? true;
  });
  for (const test of suite.tests) {
    const limit = limits[test.fullTitle()];
    if (limit !== undefined) test.timeout(Math.min(limit, test.timeout() || limit));
  }
  for (const inner of suite.suites) choose(inner, order);
};

/** Properties draw their seed as `randomInt(2 ** 31)`. */
const sameCases = (): void => {
  const { randomInt } = crypto;
  const seeded = (...args: [number]): number =>
    args.length === 1 && args[0] === 2 ** 31 ? 1 : randomInt(...args);
  Object.assign(crypto, { randomInt: seeded });
};

/** Reads the marks of scripts from its log. */
const watchRedis = (): void => {
  const { spawn } = childProcess;
  const watched = (...args: Parameters<typeof spawn>): ChildProcess => {
    const child = spawn(...args);
    if (args[2]?.argv0 !== 'redis-server') return child;
    redises += 1;
    let rest = '';
    child.stdout?.on('data', (part: Buffer | string) => {
      const lines = (rest + String(part)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const [, block] = / cover:(\S+)/.exec(line) ?? [];
        if (block !== undefined) meet(block);
      }
    });
    return child;
  };
  Object.assign(childProcess, { spawn: watched });
};

const meet = (block: string): void => {
  const title = stryker.currentTestId ?? '';
  const met = blocks.get(title) ?? new Set();
  blocks.set(title, met.add(block));
};

const [orderFile = '', resultFile = ''] = process.argv.slice(2);
await main(orderFile, resultFile);
