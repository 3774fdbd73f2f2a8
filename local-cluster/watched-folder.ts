import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endLeftovers, standsIn } from './leftovers.ts';

const TSX = import.meta.resolve('tsx');
const WATCHDOG = fileURLToPath(new URL('watchdog.ts', import.meta.url));
const MARK = 'LOCAL_CLUSTER_FOLDER';

/**
 * A new folder for a part of a local cluster. However this process ends, a watchdog then ends every
 * process that has the mark of such a folder, and removes the folders.
 */
export const watchedFolder = (name: string): string =>
  mkdtempSync(join(sharedFolder(), `${name}-`));

/** For the environment of a process that belongs to the folder; what it starts inherits it. */
export const markOf = (folder: string): Readonly<Record<string, string>> => ({ [MARK]: folder });

/**
 * Ends every process with the mark of the folder, or of one within, and those that stand in it, and
 * removes it.
 */
export const clearFolder = async (folder: string): Promise<void> => {
  await endLeftovers(belongingTo(folder), 0);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
};

/** Not those that merely name it: a shell that was told where a key lies is not ours. */
export const belongingTo = (folder: string) => standsIn(folder, `${MARK}=${folder}`);

let shared: string | undefined;

/**
 * One for this process, as others' commands may pass through it; it has its watchdog from the first
 * time on.
 */
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
