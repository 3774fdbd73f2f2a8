import { spawn } from 'node:child_process';
import { atUsualPriority } from '../../lib/priority.ts';

const PATIENCE_MS = 300_000;

/**
 * Removes it with all in it, whatever that is, without work in this process. Rejects where it could
 * not.
 */
export const removeFolder = (path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = atUsualPriority(
      spawn('rm', ['-rf', '--one-file-system', '--', path], {
        stdio: 'ignore',
        cwd: '/',
        timeout: PATIENCE_MS,
        killSignal: 'SIGKILL',
      }),
    );
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${path} could not be removed`));
    });
  });
