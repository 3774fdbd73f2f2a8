import { spawn } from 'node:child_process';
import { atUsualPriority } from '../../lib/processes.ts';

const PATIENCE_MS = 300_000;

/** In a separate process. Rejects on failure, and once `signal` is aborted; the rest then stays. */
export const removeFolder = (path: string, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = atUsualPriority(
      spawn('rm', ['-rf', '--one-file-system', '--', path], {
        stdio: 'ignore',
        cwd: '/',
        timeout: PATIENCE_MS,
        killSignal: 'SIGKILL',
        signal,
      }),
    );
    let failure: Error | undefined;
    child.once('error', (error) => {
      failure = error;
    });
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(failure ?? new Error(`${path} could not be removed`));
    });
  });
