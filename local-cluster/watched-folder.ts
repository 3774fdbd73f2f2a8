import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endLeftovers, standsIn } from './leftovers.ts';

const TSX = import.meta.resolve('tsx');
const WATCHDOG = fileURLToPath(new URL('watchdog.ts', import.meta.url));
const MARK = 'LOCAL_CLUSTER_FOLDER';

/** However this process ends, a watchdog ends the folder's processes, and removes it. */
export const watchedFolder = (name: string): string =>
  mkdtempSync(join(sharedFolder(), `${name}-`));

/** For the environment of the folder's processes, which inherit it. */
export const markOf = (folder: string): Readonly<Record<string, string>> => ({ [MARK]: folder });

/** With the folder's mark, or its working folder. */
export const clearFolder = async (folder: string): Promise<void> => {
  await endLeftovers(belongingTo(folder), 0);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
};

/** A shell that only names the folder is not ours. */
export const belongingTo = (folder: string) => standsIn(folder, `${MARK}=${folder}`);

let shared: string | undefined;

/** Others' commands may pass through it; has its watchdog from its first use. */
const sharedFolder = (): string => {
  if (shared !== undefined) return shared;
  shared = mkdtempSync(join(tmpdir(), 'sandpool-local-'));
  chmodSync(shared, 0o711);
  const watchdog = spawn(process.execPath, ['--import', TSX, WATCHDOG, shared], {
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  watchdog.stdin.on('error', () => undefined);
  watchdog.unref();
  return shared;
};
