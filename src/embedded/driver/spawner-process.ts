import { spawn } from 'node:child_process';
import {
  accessSync,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
} from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { within, type Clock } from '../../contracts/clock.ts';
import { readProcessStat } from '../spawner/sandbox/process-identity.ts';
import { pathsOf, type SpawnerConfig, type SpawnerPaths } from '../spawner/protocol.ts';
import { atUsualPriority } from '../../lib/processes.ts';

export interface SpawnerProcessOptions {
  readonly dataDir: string;
  /** Runs src/embedded/spawner/main; the data folder is appended. Paths are absolute. */
  readonly command: readonly string[];
  /** Measures how long a spawner takes to start. */
  readonly clock: Clock;
}

/** The message says which program to install. */
export class SpawnerUnusable extends Error {
  override readonly name: string = 'SpawnerUnusable';
}

/** It took the connection. */
export class SpawnerSilent extends SpawnerUnusable {
  override readonly name = 'SpawnerSilent';
}

/** Exit code of `flock` if another process has the lock. */
const TAKEN = 75;
const READY = 'ready';
const CONNECT_PATIENCE_MS = 10_000;
/** Node takes seconds with a tenth of a core, or from a cold disk. */
const START_PATIENCE_MS = 30_000;
const RETRY_MS = 20;
const COMPLAINT_LIMIT = 4_096;

/** Throws SpawnerUnusable. */
export const checkPrograms = ({
  bwrapPath,
  launcherPath,
  isolation,
}: Pick<SpawnerConfig, 'bwrapPath' | 'launcherPath' | 'isolation'>): void => {
  if (isolation !== 'none' && !isExecutable(bwrapPath))
    throw new SpawnerUnusable(
      `bubblewrap is not at ${bwrapPath}: install it (apt-get install bubblewrap), or for ` +
        'a trial without isolation set isolation to none',
    );
  if (!isExecutable(launcherPath))
    throw new SpawnerUnusable(
      `the launcher is not at ${launcherPath}: build it with native/build, which needs a ` +
        'C compiler (apt-get install gcc libc6-dev)',
    );
};

/** Starts a spawner if none runs. Rejects within about 40 s. */
export const connectSpawner = async (options: SpawnerProcessOptions): Promise<Socket> => {
  const paths = pathsOf(options.dataDir);
  const deadline = performance.now() + CONNECT_PATIENCE_MS;
  for (;;) {
    if (paths.socketFolder !== options.dataDir) requireOurs(paths.socketFolder);
    const socket = await tryConnect(paths.socket);
    if (socket) return socket;
    if (performance.now() > deadline)
      throw new SpawnerUnusable(`another spawner holds ${paths.lock} and does not answer`);
    const started = await startSpawner(options, paths);
    // Another spawner is starting or ending.
    if (!started) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
};

/** Its sandboxes stay. */
export const killSpawner = (dataDir: string): void => {
  const pid = holderOf(pathsOf(dataDir).lock);
  if (pid === undefined) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!isGone(error)) throw error;
  }
};

const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ESRCH';

export const spawnerStandsStill = (dataDir: string): boolean => {
  const pid = holderOf(pathsOf(dataDir).lock);
  return pid !== undefined && readProcessStat(pid)?.state === 'T';
};

/** It still has the lock file open. */
const holderOf = (lock: string): number | undefined => {
  const inode = String(statSync(lock, { throwIfNoEntry: false })?.ino);
  for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
    const [, kind, , , pid, file] = line.trim().split(/\s+/);
    if (kind === 'FLOCK' && file?.split(':')[2] === inode && hasOpen(Number(pid), lock))
      return Number(pid);
  }
  return undefined;
};

const hasOpen = (pid: number, path: string): boolean => {
  try {
    return readdirSync(`/proc/${pid}/fd`).some(
      (fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === path,
    );
  } catch {
    return false;
  }
};

/** In /tmp, another user could create the folder first and pose as the spawner. */
const requireOurs = (folder: string): void => {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (
    !found ||
    (found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0)
  )
    return;
  throw new SpawnerUnusable(
    `${folder} belongs to another user: remove it, or choose a data folder with a shorter path`,
  );
};

/** No spawner listens, it just ended, or it is stopped and its backlog full. */
const NONE_THERE: ReadonlySet<string> = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EAGAIN']);

const tryConnect = (path: string): Promise<Socket | undefined> =>
  new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (NONE_THERE.has(error.code ?? '')) resolve(undefined);
      else
        reject(
          new SpawnerUnusable(`the spawner cannot be reached at ${path}: ${error.message}`, {
            cause: error,
          }),
        );
    });
  });

/**
 * `flock` takes the lock and becomes the spawner, so the kernel frees the lock at its end. Resolves
 * to false if the lock is taken.
 */
const startSpawner = async (
  { command, dataDir, clock }: SpawnerProcessOptions,
  paths: SpawnerPaths,
): Promise<boolean> => {
  const complaints = join(dataDir, 'spawner.err');
  const errors = openSync(complaints, 'w', 0o600);
  const child = atUsualPriority(
    spawn(
      'flock',
      [
        '--nonblock',
        '--conflict-exit-code',
        String(TAKEN),
        '--no-fork',
        paths.lock,
        ...command,
        dataDir,
      ],
      {
        detached: true,
        stdio: ['ignore', 'pipe', errors],
        env: { PATH: '/usr/local/bin:/usr/bin:/bin', TMPDIR: tmpdir() },
        cwd: '/',
      },
    ),
  );
  closeSync(errors);
  const begun = new Promise<number | string>((resolve) => {
    child.stdout?.once('data', () => resolve(READY));
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(code ?? `ended by ${signal}`));
  });
  const outcome = (await within(clock, START_PATIENCE_MS, begun)) ?? 'it takes too long';
  child.stdout?.destroy();
  child.unref();
  if (outcome === READY) return true;
  if (outcome === TAKEN) return false;
  throw new SpawnerUnusable(
    'the spawner did not start: ' +
      `${readFileSync(complaints, 'utf8').slice(0, COMPLAINT_LIMIT).trim() || outcome}`,
  );
};

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};
