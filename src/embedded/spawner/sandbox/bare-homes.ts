import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  statSync,
} from 'node:fs';
import { join, posix } from 'node:path';
import { HOME } from './rootfs.ts';

/** A sandbox with `isolation: none`. */
export interface Bare {
  /** Replaces /home/sandbox. */
  readonly home: string;
  readonly uid: number;
}

const REMOVAL_PATIENCE_MS = 60_000;

/** Every uid can pass through to its own folder, but can't list the others. */
export class BareHomes {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Throws if the common folder belongs to somebody else. */
  create(id: string, uid: number): string {
    mkdirSync(this.#folder, { recursive: true, mode: 0o711 });
    const found = lstatSync(this.#folder);
    if (!found.isDirectory() || found.uid !== process.getuid?.())
      throw new Error(`${this.#folder} must be a folder of the daemon's user`);
    if ((found.mode & 0o777) !== 0o711) chmodSync(this.#folder, 0o711);
    const home = join(this.#folder, id);
    mkdirSync(home, { mode: 0o700 });
    chownSync(home, uid, uid === process.getuid?.() ? (process.getgid?.() ?? uid) : uid);
    return home;
  }

  others(ids: ReadonlySet<string>): readonly string[] {
    if (!existsSync(this.#folder)) return [];
    return readdirSync(this.#folder)
      .filter((id) => !ids.has(id))
      .map((id) => join(this.#folder, id));
  }

  remove(): void {
    try {
      rmdirSync(this.#folder);
    } catch {}
  }
}

/** `rm` works by descriptors, so any depth is fine. */
export const removeHome = async (home: string): Promise<void> => {
  await run('rm', ['-rf', '--one-file-system', '--', home]);
  if (!existsSync(home)) return;
  // Without root, folders without permissions need them back first.
  await run('chmod', ['-R', 'u+rwX', '--', home]);
  await run('rm', ['-rf', '--one-file-system', '--', home]);
  if (existsSync(home)) throw new Error(`${home} could not be removed`);
};

export const hostPath = (home: string, path: string): string => {
  const plain = posix.normalize(path);
  return plain === HOME || plain.startsWith(`${HOME}/`) ? home + plain.slice(HOME.length) : plain;
};

/**
 * Finds a bare sandbox's processes without a cgroup: by its own uid, or by its folder in the
 * environment or as working folder. Reads all of /proc.
 */
export const processesOfBare = ({ home, uid }: Bare, ownUid: boolean): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        if (
          statSync(`/proc/${pid}`).uid !== uid ||
          /^State:\t[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
        )
          return false;
        return (
          ownUid ||
          readFileSync(`/proc/${pid}/environ`, 'latin1').includes(home) ||
          readlinkSync(`/proc/${pid}/cwd`).startsWith(home)
        );
      } catch {
        return false;
      }
    });

const run = (command: string, args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: 'ignore',
      cwd: '/',
      timeout: REMOVAL_PATIENCE_MS,
      killSignal: 'SIGKILL',
    });
    child.once('error', reject);
    child.once('exit', () => resolve());
  });
