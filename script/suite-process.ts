import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { endLeftovers, ofRun } from '../local-cluster/leftovers.ts';
import type { SuiteResult } from './test-reporter.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** After the last test, for the process and what it started. */
const END_GRACE_MS = 10_000;
const LEFTOVER_GRACE_MS = 10_000;

export interface SuiteOrder {
  readonly name: string;
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly node: string;
  /** Part of the full title. */
  readonly grep?: string;
  /** TMPDIR of the tests; files that remain count as left behind. */
  readonly folder: string;
  /** Shows every test as it ends, instead of failures at the end. */
  readonly isLive: boolean;
}

/**
 * A suite fails if it crashes, runs no test, continues after its last test, or leaves processes
 * behind.
 */
export class SuiteProcess {
  readonly #order: SuiteOrder;
  readonly #child: ChildProcess;
  readonly #output: Promise<() => Buffer>;

  constructor(order: SuiteOrder) {
    this.#order = order;
    mkdirSync(order.folder, { recursive: true, mode: 0o711 });
    rmSync(this.#resultFile, { force: true });
    this.#child = this.#start();
    this.#output = keptOutput(this.#child);
  }

  /** Also at the deadline, which kills it. */
  async result(deadline: number): Promise<SuiteResult> {
    const end = await this.#end(deadline);
    const leftovers = await endLeftovers(this.#belongs, LEFTOVER_GRACE_MS);
    const output = await Promise.race([this.#output, pause(LEFTOVER_GRACE_MS)]);
    if (output) process.stdout.write(output());
    const found = this.#read();
    if (!found) return this.#failed(end.late ? 'did not end in time' : `crashed (${end.how})`);
    let result = found;
    const open = found.open?.join(', ') ?? 'it does not say what';
    if (end.late)
      result = this.#failed(
        `was still alive 10 s after its last test: something it opened was not closed (${open})`,
        result,
      );
    else if (found.failed.length === 0 && end.how !== 'exit code 0')
      result = this.#failed(`failed after its last test (${end.how})`, result);
    if (found.passed + found.failed.length + found.skipped.length === 0)
      result = this.#failed('ran no test', result);
    if (leftovers.length === 0) return result;
    const list = leftovers.map(({ pid, command }) => `${pid} ${command}`).join('; ');
    return this.#failed(`left processes behind: ${list}`, result);
  }

  /** With all that it started. */
  async abort(): Promise<void> {
    this.#kill();
    await endLeftovers(this.#belongs, 0);
  }

  get #belongs(): ReturnType<typeof ofRun> {
    return ofRun({ session: this.#child.pid ?? -1, folder: this.#order.folder });
  }

  get #resultFile(): string {
    return join(this.#order.folder, 'result.json');
  }

  #start(): ChildProcess {
    const { files, node, env, grep, folder, isLive } = this.#order;
    const clean = Object.entries(process.env).filter(([name]) => !name.startsWith('SANDPOOL_'));
    const options = [
      ...['--config', join(ROOT, '.mocharc.json')],
      ...['--require', join(ROOT, 'script/test-process.ts')],
      ...['--reporter', join(ROOT, 'script/test-reporter.ts')],
      ...['--reporter-option', `result=${this.#resultFile}`],
      ...['--reporter-option', `listing=${isLive ? 'all' : 'failures'}`],
      ...(grep === undefined ? [] : ['--fgrep', grep]),
    ];
    const child = spawn(
      node,
      [join(ROOT, 'node_modules/mocha/bin/mocha.js'), ...options, ...files],
      {
        cwd: ROOT,
        detached: true,
        env: {
          ...Object.fromEntries(clean),
          TEST_TMPDIR: folder,
          ...env,
          PATH: `${dirname(node)}${delimiter}${process.env['PATH'] ?? ''}`,
        },
        stdio: isLive ? ['ignore', 'inherit', 'inherit'] : ['ignore', 'pipe', 'pipe'],
      },
    );
    child.on('error', (error) => console.log(`mocha can't be started: ${error.message}`));
    return child;
  }

  async #end(deadline: number): Promise<{ readonly late: boolean; readonly how: string }> {
    const child = this.#child;
    let until = deadline;
    let finished = false;
    while (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      if (performance.now() > until) {
        this.#kill();
        return { late: true, how: 'killed' };
      }
      await pause(100);
      if (!finished && existsSync(this.#resultFile)) {
        finished = true;
        until = Math.min(deadline, performance.now() + END_GRACE_MS);
      }
    }
    return { late: false, how: child.signalCode ?? `exit code ${child.exitCode ?? 'unknown'}` };
  }

  #kill(): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }

  #read(): SuiteResult | undefined {
    try {
      return JSON.parse(readFileSync(this.#resultFile, 'utf8')) as SuiteResult;
    } catch {
      return undefined;
    }
  }

  #failed(problem: string, result?: SuiteResult): SuiteResult {
    const { name } = this.#order;
    console.log(`\n${name}: ${problem}`);
    return {
      passed: result?.passed ?? 0,
      failed: [...(result?.failed ?? []), `${name}: ${problem}`],
      skipped: result?.skipped ?? [],
      files: result?.files ?? [],
    };
  }
}

const keptOutput = async ({ stdout, stderr }: ChildProcess): Promise<() => Buffer> => {
  const parts: Buffer[] = [];
  const streams = [stdout, stderr].filter((stream) => stream !== null);
  for (const stream of streams) stream.on('data', (part: Buffer) => parts.push(part));
  await Promise.all(streams.map((stream) => once(stream, 'close')));
  return () => Buffer.concat(parts);
};
