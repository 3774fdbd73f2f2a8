import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { DataDirTaken, lockDataDir } from '../embedded/store/data-lock.ts';
import { readySavedDatabase, UNFINISHED_RESTORE } from '../embedded/store/saved-database.ts';

/** A restore that replaced nothing. */
export class RestoreRefused extends Error {
  override readonly name = 'RestoreRefused';
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** Files of a killed daemon only fit the old database. */
const REPLACED = ['sandpool.db', 'sandpool.db-wal', 'sandpool.db-shm', 'sandpool.db-journal'];
const FOLDERS = ['keys', 'fleet'];
const MOST_FILES = 1_000;
const MOST_FILE_BYTES = 2 ** 20;

/**
 * Restores a backup's database and secrets. Keeps all other files, above all `run/` and `logs/`, by
 * which the daemon finds running sandboxes. Moves replaced files to a new folder inside, and
 * returns its path. Rejects with RestoreRefused, with nothing replaced, if a daemon runs there, the
 * backup is damaged or a file can't be moved. After an interruption, no daemon starts there until
 * another call succeeds.
 */
export const restoreBackup = async (
  backup: string,
  { dataDir, now }: { readonly dataDir: string; readonly now: Date },
): Promise<string | undefined> => {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockOf(dataDir);
  const unpacked = join(dataDir, 'restoring');
  try {
    rmSync(unpacked, { recursive: true, force: true }); // left behind by an interrupted call
    await mkdir(unpacked, { mode: 0o700 });
    try {
      await unpack(backup, unpacked);
      check(unpacked);
      return replace(dataDir, unpacked, now);
    } catch (error) {
      throw new RestoreRefused(
        `${backup} can’t be restored: ${error instanceof Error ? error.message : String(error)}`,
        `nothing was replaced; ${adviceOn(error)}`,
        { cause: error },
      );
    }
  } finally {
    rmSync(unpacked, { recursive: true, force: true });
    lock.release();
  }
};

const adviceOn = (error: unknown): string => {
  const { code, path } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  if (code === 'ENOSPC') return 'free enough disk space for one more copy of the database';
  if (code === 'EBUSY')
    return (
      `${path ?? 'a file of the data folder'} is a mount point, which can’t be moved: ` +
      'unmount it, restore again, copy the restored files to the volume, and mount it again'
    );
  return 'name a file that sandpool backup wrote';
};

const lockOf = (dataDir: string): ReturnType<typeof lockDataDir> => {
  try {
    return lockDataDir(dataDir);
  } catch (error) {
    if (!(error instanceof DataDirTaken)) throw error;
    throw new RestoreRefused(
      `a daemon runs on the data folder ${dataDir}`,
      'stop it first: sandpool stop',
      { cause: error },
    );
  }
};

const unpack = async (backup: string, into: string): Promise<void> => {
  const archive = extract();
  const source = createReadStream(backup);
  const plain = source.pipe(createGunzip());
  source.once('error', (error) => plain.destroy(error));
  plain.once('error', (error) => archive.destroy(error));
  plain.pipe(archive);
  let files = 0;
  try {
    for await (const entry of archive) {
      const { name, type, size } = entry.header;
      if (!isOfBackup(name, type ?? 'file'))
        throw new Error(`it contains ${name}, which no backup does`);
      if (type === 'directory') {
        entry.resume();
        continue;
      }
      if ((files += 1) > MOST_FILES) throw new Error(`it contains more than ${MOST_FILES} files`);
      if (name !== 'sandpool.db' && size > MOST_FILE_BYTES)
        throw new Error(`${name} in it is larger than ${MOST_FILE_BYTES} bytes`);
      await write(join(into, name), entry as AsyncIterable<Buffer>);
    }
  } catch (error) {
    throw worded(error);
  } finally {
    source.destroy();
  }
};

const isOfBackup = (name: string, type: string): boolean => {
  const [folder = '', file, ...more] = name.split('/');
  if (name === 'sandpool.db') return type === 'file';
  if (!FOLDERS.includes(folder) || more.length > 0 || file === '.' || file === '..') return false;
  return type === (file === undefined || file === '' ? 'directory' : 'file');
};

const write = async (path: string, content: AsyncIterable<Buffer>): Promise<void> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, 'wx', 0o600);
  try {
    await writeFile(file, content);
    await file.sync();
  } finally {
    await file.close();
  }
};

const worded = (error: unknown): unknown => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'Z_BUF_ERROR') return new Error('it ends too early', { cause: error });
  if (typeof code === 'string' && code.startsWith('Z_'))
    return new Error('it is not a gzipped tar', { cause: error });
  return error;
};

/** Throws if a daemon could not start with the files. */
const check = (unpacked: string): void => {
  for (const name of ['sandpool.db', 'keys/pepper'])
    if (!existsSync(join(unpacked, name))) throw new Error(`it contains no ${name}`);
  if (!/^[0-9a-f]{64}$/.test(readFileSync(join(unpacked, 'keys/pepper'), 'utf8').trim()))
    throw new Error('keys/pepper in it is damaged');
  readySavedDatabase(join(unpacked, 'sandpool.db'));
};

/**
 * Replaces all files or none, even if the process is killed, since no daemon accepts a partly
 * restored folder.
 */
const replace = (dataDir: string, unpacked: string, now: Date): string | undefined => {
  const names = [...REPLACED, ...FOLDERS];
  const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  const old = names.filter((name) => isThere(join(dataDir, name)));
  const aside = join(dataDir, `replaced-${now.toISOString().replaceAll(/[:.]/g, '-')}`);
  const mark = join(dataDir, UNFINISHED_RESTORE);
  const wasUnfinished = isThere(mark);
  const moved: { readonly from: string; readonly to: string }[] = [];
  const move = (name: string, source: string, target: string): void => {
    const [from, to] = [join(source, name), join(target, name)];
    renameSync(from, to);
    moved.unshift({ from, to });
  };
  if (old.length > 0) mkdirSync(aside, { mode: 0o700 });
  try {
    writeFileSync(mark, '', { mode: 0o600 });
    sync(dataDir);
    for (const name of old) move(name, dataDir, aside);
    for (const name of names.filter((each) => isThere(join(unpacked, each))))
      move(name, unpacked, dataDir);
  } catch (error) {
    for (const { from, to } of moved) renameSync(to, from);
    if (!wasUnfinished) rmSync(mark, { force: true });
    if (old.length > 0) rmSync(aside, { recursive: true });
    throw error;
  }
  sync(dataDir);
  rmSync(mark);
  return old.length > 0 ? aside : undefined;
};

const sync = (folder: string): void => {
  const file = openSync(folder, 'r');
  fsyncSync(file);
  closeSync(file);
};
