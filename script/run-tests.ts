/**
 * See `script/test --help`. The last line is `N passed, N failed, N skipped`. Ends with 0, or 10
 * after a failure; another code is a crash of the run itself.
 *
 * Lanes run in parallel, and take units of the plan (script/test-plan.ts): one mocha process, or
 * one check.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { changedFiles } from './changed-files.ts';
import { otherNode } from './other-nodes.ts';
import { SuiteProcess } from './suite-process.ts';
import budgets from './test-budget.json' with { type: 'json' };
import {
  filesOf,
  kubernetesFiles,
  type Slice,
  sliceOf,
  SLICES,
  type Unit,
  unitsOf,
  usualFiles,
} from './test-plan.ts';
import type { SuiteResult } from './test-reporter.ts';
import { beyondBudget, measureUsage, shownUsage } from './test-usage.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TESTS = join(ROOT, 'test/');
/** A cluster's processes take a core each. */
const LANES = 2;
/** Suites on daemons wait for half of their time. */
const LANES_THAT_WAIT = 3;
/** An emergency brake: some times the budget. */
const RUN_DEADLINE_MS = 60 * 60_000;
const SLOWEST = 10;
const NONE: SuiteResult = { passed: 0, failed: [], skipped: [], files: [] };

interface Check {
  readonly name: string;
  readonly command: readonly string[];
}

const program = (path: string): string => join(ROOT, 'node_modules', path);
const BUILD: Check = { name: 'build', command: [join(ROOT, 'script/build')] };
const CHECKS: readonly Check[] = [
  {
    name: 'lint',
    command: [
      ...[process.execPath, program('oxlint/bin/oxlint')],
      ...['--type-aware', '--deny-warnings'],
    ],
  },
  {
    name: 'type check',
    command: [process.execPath, program('typescript/bin/tsc'), '--noEmit', '-p', 'tsconfig.json'],
  },
  { name: 'format', command: [process.execPath, program('oxfmt/bin/oxfmt'), '--check'] },
];

interface Plan {
  readonly title: string;
  readonly units: readonly Unit[];
  readonly checks: readonly Check[];
  readonly lanes?: number;
  /** In minutes; none for files named by hand. */
  readonly budget?: number;
  readonly grep?: string;
  /** For this machine. */
  readonly skipped?: string;
}

const main = async (args: readonly string[]): Promise<number> => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      changed: { type: 'boolean' },
      grep: { type: 'string' },
      'in-turn': { type: 'boolean' },
      list: { type: 'boolean' },
      needs: { type: 'boolean' },
      today: { type: 'boolean' },
    },
  });
  const slices = positionals[0] === 'long' ? slicesOf(positionals.slice(1), values.today) : [];
  if (values.needs) return printNeeds(slices);
  if (values.list && slices.length > 0)
    return list(slices.map((slice) => ({ title: slice.name, units: unitsOf(filesOf(slice)) })));
  const plans = slices.length > 0 ? slices.map(planOfSlice) : [planOf(positionals, values)];
  if (values.list) return list(plans);
  const results: SuiteResult[] = [];
  for (const plan of plans) {
    const lanes = values['in-turn'] ? 1 : (plan.lanes ?? LANES);
    results.push(...(await new Run(plan, lanes).all()));
  }
  return report(results);
};

const slicesOf = (names: readonly string[], today = false): readonly Slice[] => {
  if (today) return [sliceOf(new Date())];
  const unknown = names.find((name) => !SLICES.some((slice) => slice.name === name));
  if (unknown !== undefined)
    throw new Error(
      `there is no slice '${unknown}'; there are ${SLICES.map(({ name }) => name).join(' ')}`,
    );
  return names.length === 0 ? SLICES : SLICES.filter(({ name }) => names.includes(name));
};

const planOf = (
  positionals: readonly string[],
  { changed, grep }: { readonly changed?: boolean; readonly grep?: string },
): Plan => {
  if (positionals[0] === 'kubernetes' && positionals.length === 1)
    return {
      title: 'kubernetes',
      units: unitsOf(kubernetesFiles()),
      checks: [BUILD],
      budget: budgets.kubernetes,
    };
  if (changed)
    return {
      title: 'changed',
      units: unitsOf(changedFiles(usualFiles())),
      checks: [BUILD, ...CHECKS],
    };
  if (positionals.length === 0)
    return {
      title: 'test',
      units: unitsOf(usualFiles()),
      checks: [BUILD, ...CHECKS],
      lanes: LANES_THAT_WAIT,
      budget: budgets.test,
    };
  const files = positionals.map((file) => resolve(file));
  return {
    title: 'the files named',
    units: [{ name: 'the files named', files }],
    checks: [BUILD],
    grep,
  };
};

const planOfSlice = (slice: Slice): Plan => {
  const { name: title, env, node } = slice;
  const missing = slice.needs === 'real-node' ? process.env['TEST_NO_REAL_NODE'] : undefined;
  const other = node === undefined ? undefined : otherNode(node);
  const skipped =
    missing ?? (other && 'cause' in other ? `Node ${node}: ${other.cause}` : undefined);
  const more = { ...(env ? { env } : {}), ...(node === undefined ? {} : { node }) };
  return {
    title: `long ${title}`,
    units: unitsOf(filesOf(slice), more),
    checks: [BUILD],
    budget: budgets.slice,
    skipped,
  };
};

const printNeeds = (slices: readonly Slice[]): number => {
  for (const need of new Set(slices.map(({ needs }) => needs)))
    if (need !== undefined) console.log(need);
  return 0;
};

const list = (plans: readonly Pick<Plan, 'title' | 'units'>[]): number => {
  for (const { title, units } of plans)
    for (const { name, files } of units)
      console.log(`${title}: ${name}: ${files.map((file) => relative(TESTS, file)).join(' ')}`);
  return 0;
};

class Run {
  readonly #plan: Plan;
  readonly #lanes: number;
  readonly #folder = mkdtempSync(join(tmpdir(), 'sandpool-'));
  readonly #deadline = performance.now() + RUN_DEADLINE_MS;
  readonly #running = new Set<SuiteProcess>();
  readonly #results: SuiteResult[] = [];

  constructor(plan: Plan, lanes: number) {
    this.#plan = plan;
    this.#lanes = lanes;
    // sandboxes with their own uids must reach their folders below it
    chmodSync(this.#folder, 0o711);
  }

  async all(): Promise<readonly SuiteResult[]> {
    const { title, checks, units, budget, skipped } = this.#plan;
    if (skipped !== undefined) {
      rmSync(this.#folder, { recursive: true });
      return [{ ...NONE, skipped: [`${title}: ${skipped}`] }];
    }
    const abort = (signal: NodeJS.Signals): void => void this.#abort(signal);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, abort);
    const used = measureUsage();
    const [build, ...others] = checks;
    if (build) this.#results.push(await runCheck(build));
    const beside = units.filter(({ alone }) => !alone);
    const next = [...others.map((check) => () => runCheck(check)), ...beside.map((unit) => unit)];
    const lanes = Array.from({ length: this.#lanes }, (_, lane) => this.#lane(lane, next));
    await Promise.all(lanes);
    await this.#lane(
      0,
      units.filter(({ alone }) => alone),
    );
    rmSync(this.#folder, { recursive: true, force: true });
    const usage = used();
    showSlowest(this.#results);
    console.log(`${title}: ${shownUsage(usage)}`);
    const over = budget === undefined ? undefined : beyondBudget(usage, budget);
    if (over !== undefined) this.#results.push({ ...NONE, failed: [`${title}: ${over}`] });
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, abort);
    return this.#results;
  }

  /** All lanes share `next`. */
  async #lane(lane: number, next: (Unit | (() => Promise<SuiteResult>))[]): Promise<void> {
    for (let each = next.shift(); each !== undefined; each = next.shift())
      this.#results.push(await (typeof each === 'function' ? each() : this.#unit(lane, each)));
  }

  async #unit(lane: number, unit: Unit): Promise<SuiteResult> {
    const { units, grep } = this.#plan;
    const { name, files, env = {}, node } = unit;
    if (performance.now() > this.#deadline)
      return { ...NONE, failed: [`${name}: not run, the time for all suites is over`] };
    const began = performance.now();
    const other = node === undefined ? { program: process.execPath } : otherNode(node);
    const suite = new SuiteProcess({
      ...{ name, files, env, isLive: units.length === 1 },
      node: 'program' in other ? other.program : process.execPath,
      folder: join(this.#folder, String(lane)),
      grep,
    });
    this.#running.add(suite);
    const result = await suite.result(this.#deadline);
    this.#running.delete(suite);
    showEnd({ name, failed: result.failed.length, began }, `${result.passed} passed`);
    return result;
  }

  async #abort(signal: NodeJS.Signals): Promise<void> {
    await Promise.all([...this.#running].map((suite) => suite.abort()));
    rmSync(this.#folder, { recursive: true, force: true });
    process.exit(signal === 'SIGINT' ? 130 : 143);
  }
}

const runCheck = async ({ name, command: [path = '', ...args] }: Check): Promise<SuiteResult> => {
  const began = performance.now();
  const child = spawn(path, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
  child.on('error', (error) => {
    output += error.message;
  });
  const [code]: unknown[] = await once(child, 'close');
  showEnd({ name, failed: code === 0 ? 0 : 1, began });
  if (code === 0) return NONE;
  console.log(output);
  return { ...NONE, failed: [name] };
};

const showEnd = (
  {
    name,
    failed,
    began,
  }: { readonly name: string; readonly failed: number; readonly began: number },
  found?: string,
): void => {
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  const counts = [found, failed > 0 ? `${failed} failed` : undefined].filter((each) => each);
  const said = [`${seconds} s`, ...counts].join(', ');
  console.log(`${failed === 0 ? 'ok    ' : 'FAILED'}  ${name} (${said})`);
};

const showSlowest = (results: readonly SuiteResult[]): void => {
  const files = results.flatMap((result) => result.files);
  if (files.length < SLOWEST) return;
  console.log('\nslowest files, in seconds by the clock and of processor time:');
  for (const { file, clock, processor } of files
    .toSorted((a, b) => b.clock - a.clock)
    .slice(0, SLOWEST))
    console.log(`  ${clock.toFixed(1).padStart(6)} ${processor.toFixed(1).padStart(6)}  ${file}`);
};

const report = (results: readonly SuiteResult[]): number => {
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.flatMap((result) => result.failed);
  const skipped = results.flatMap((result) => result.skipped);
  if (passed + failed.length + skipped.length === 0) failed.push('no test was found');
  console.log('');
  for (const line of skipped) console.log(`skipped: ${line}`);
  for (const line of failed) console.log(`FAILED: ${line}`);
  console.log(`${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
  return failed.length > 0 ? 10 : 0;
};

process.exitCode = await main(process.argv.slice(2));
