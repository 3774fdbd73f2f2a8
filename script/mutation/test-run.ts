import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Order, Result } from './tests-in-tree.ts';

/** `crashed`: without a result; `why` is the end of its output. */
export type Outcome =
  | { readonly kind: 'result'; readonly result: Result }
  | { readonly kind: 'late' }
  | { readonly kind: 'crashed'; readonly why: string };

/** Processor seconds, and ms of the clock. */
export interface Limits {
  readonly processorS: number;
  readonly wallMs: number;
}

const running = new Set<ChildProcess>();
let temporary: string | undefined;

/** Removes their temporary files. */
export const endAll = (): void => {
  for (const child of running) kill(child);
  if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true, maxRetries: 5 });
};

/** In a process that yields to everything else. */
export const runTests = async (
  tree: string,
  order: Order,
  { processorS, wallMs }: Limits,
): Promise<Outcome> => {
  temporary ??= mkdtempSync(join(tmpdir(), 'mutants-'));
  const folder = mkdtempSync(join(temporary, 'run-'));
  const [orderFile, resultFile] = [join(folder, 'order.json'), join(folder, 'result.json')];
  writeFileSync(orderFile, JSON.stringify(order));
  // the limit also holds for a Redis, which a script may keep busy for ever
  const child = spawn(
    'bash',
    [
      '-c',
      `ulimit -c 0; ulimit -t ${Math.ceil(processorS)}; exec nice -n 19 "$0" "$@"`,
      process.execPath,
      'script/mutation/tests-in-tree.js',
      ...[orderFile, resultFile],
    ],
    { cwd: tree, detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: environment(temporary) },
  );
  running.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part: Buffer) => {
      said = (said + part.toString()).slice(-2_000);
    });
  try {
    const { signal, late } = await endOf(child, wallMs);
    const result = read(resultFile);
    if (result) return { kind: 'result', result };
    return late || signal === 'SIGXCPU' || signal === 'SIGKILL'
      ? { kind: 'late' }
      : { kind: 'crashed', why: said.trim().slice(-600) };
  } finally {
    running.delete(child);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
};

const environment = (folder: string): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('SANDPOOL_')),
  ),
  TMPDIR: folder,
});

const endOf = async (
  child: ChildProcess,
  wallMs: number,
): Promise<{ readonly signal: NodeJS.Signals | null; readonly late: boolean }> => {
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    kill(child);
  }, wallMs);
  const signal = await new Promise<NodeJS.Signals | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (_, by) => resolve(by));
  });
  clearTimeout(timer);
  kill(child); // also started processes
  return { signal, late };
};

const kill = ({ pid }: ChildProcess): void => {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
};

const read = (file: string): Result | undefined => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Result;
  } catch {
    return undefined;
  }
};
