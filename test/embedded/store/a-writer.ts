import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { NEVER_COMES_MS } from '../../support/harness/eventually.ts';

export interface Writer {
  /** What it said was acknowledged, in order: `id state`. */
  readonly acknowledged: readonly string[];
  /** Resolves once so many were. */
  reached(count: number): Promise<void>;
  /** With SIGKILL; resolves when it is dead and all it said was read. */
  kill(): Promise<void>;
}

/**
 * A process of its own that holds the folder and the file and writes without end. Resolves when it
 * has opened both.
 */
export const aWriter = async (path: string): Promise<Writer> => {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', fileURLToPath(new URL('./writer-process.ts', import.meta.url)), path],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const acknowledged: string[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const lines = createInterface({ input: child.stdout });
  const opened = once(lines, 'line', { signal: AbortSignal.timeout(NEVER_COMES_MS) });
  let complete = true;
  lines.on('line', (line) => {
    if (line === 'open') return;
    acknowledged.push(line);
    for (const { count, resolve } of waiting) if (acknowledged.length >= count) resolve();
  });
  const ended = Promise.all([
    once(lines, 'close'),
    once(child, 'exit').then(() => {
      complete = false;
    }),
  ]);
  await opened;
  return {
    acknowledged,
    reached: (count) =>
      new Promise((resolve, reject) => {
        waiting.push({ count, resolve });
        if (acknowledged.length >= count) resolve();
        else if (!complete) reject(new Error('the writer ended by itself'));
      }),
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
};
