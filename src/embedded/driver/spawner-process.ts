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
  /** Absolute path. */
  readonly dataDir: string;
  /**
   * Program and arguments that run src/embedded/spawner/main. The data folder is appended. Paths
   * are absolute.
   */
  readonly command: readonly string[];
  /** Measures how long a spawner takes to start. */
  readonly clock: Clock;
}

/** A program that sandboxes need is missing; the message says which one to install. */
export class SpawnerUnusable extends Error {
  override readonly name: string = 'SpawnerUnusable';
}

/** The spawner took the connection, but does not answer. */
export class SpawnerSilent extends SpawnerUnusable {
  override readonly name = 'SpawnerSilent';
}

/** Exit code of `flock` if another process has the lock. */
const TAKEN = 75;
const READY = 'ready';
const CONNECT_PATIENCE_MS = 10_000;
/** Node takes seconds to start with a tenth of a core, or from a cold disk. */
const START_PATIENCE_MS = 30_000;
const RETRY_MS = 20;
const COMPLAINT_LIMIT = 4_096;

/**
 * Throws SpawnerUnusable if the launcher is missing, or bubblewrap is missing and isolation is on.
 */
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

/**
 * Connects to the data folder's spawner. Starts a spawner if none runs. Rejects within about forty
 * seconds.
 */
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
    // Another spawner is starting or ending: it answers or frees the lock soon.
    if (!started) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
};

/**
 * Kills the data folder's spawner, if one runs. Its sandboxes stay; the next spawner adopts them.
 */
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

/** Returns whether a signal has stopped the data folder's spawner. */
export const spawnerStandsStill = (dataDir: string): boolean => {
  const pid = holderOf(pathsOf(dataDir).lock);
  return pid !== undefined && readProcessStat(pid)?.state === 'T';
};

/** Finds the process that took the lock and still has it open. */
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

/** Requires our own folder: in /tmp, another user could create it first and pose as the spawner. */
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

/**
 * Errors of connect() if no spawner listens, or it just ended, or its backlog is full while it is
 * stopped.
 */
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
 * Starts a detached spawner. `flock` takes the lock and becomes the spawner; the kernel frees the
 * lock when the spawner ends. Resolves to false if another process has the lock.
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
