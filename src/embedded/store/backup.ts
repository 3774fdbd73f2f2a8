import { spawn } from 'node:child_process';
import { createReadStream, existsSync } from 'node:fs';
import { chmod, lstat, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { pack, type Pack } from 'tar-stream';
import type { Clock } from '../../contracts/clock.ts';
import type { Database } from './database.ts';
import { atUsualPriority, withPipes } from '../../lib/processes.ts';

export interface BackupDeps {
  readonly database: Pick<Database, 'whileStill'>;
  readonly dataDir: string;
  readonly clock: Clock;
}

/** A database of gigabytes on a slow disk. */
const COPY_DEADLINE_MS = 10 * 60_000;
const FAST = 1;
/** By what a daemon, its keys, and a cluster of a fleet are known. */
const SECRET_FOLDERS = ['keys', 'fleet'];

/**
 * Makes a backup of the data folder as it is now, as a gzipped tar: `sandpool.db` whole, `keys/`,
 * and `fleet/` where there is one. Unpacked into an empty folder it is a data folder. Requests go
 * on meanwhile: another process copies the file while it stands still, and the copy is what is
 * sent, however slow its reader. The copy goes with the stream, before that is closed. Rejects
 * where a backup is under way already, and once `signal` is aborted; then nothing of it runs any
 * more.
 */
export const embeddedBackup = ({
  database,
  dataDir,
  clock,
}: BackupDeps): ((signal: AbortSignal) => Promise<Readable>) => {
  const folder = join(dataDir, 'backup');
  const copy = join(folder, 'sandpool.db');
  const remove = async (): Promise<void> => {
    await rm(folder, { recursive: true, force: true });
  };
  /** The removal of the copy before. */
  let removed = Promise.resolve();
  return async (signal) => {
    try {
      await database.whileStill(async (file) => {
        await removed;
        await remove(); // what an earlier daemon may have left
        await mkdir(folder, { mode: 0o700 });
        await copyByChild(
          file,
          copy,
          AbortSignal.any([signal, AbortSignal.timeout(COPY_DEADLINE_MS)]),
        );
      });
      await chmod(copy, 0o600);
      signal.throwIfAborted();
    } catch (error) {
      await remove();
      throw error;
    }
    const archive = pack();
    const stream = new PassThrough({
      destroy: (error, done) => {
        removed = remove().catch(() => undefined); // what stays is removed by the next one
        const told = (): void => done(error);
        void removed.then(told);
      },
    });
    // the stream tells its reader
    pipeline(archive, createGzip({ level: FAST }), stream).catch(() => undefined);
    fill(archive, { copy, dataDir, now: new Date(clock.now()) }).catch((error: Error) => {
      stream.destroy(error);
    });
    signal.addEventListener(
      'abort',
      () => {
        stream.destroy(new Error('called off'));
      },
      { once: true },
    );
    return stream;
  };
};

const fill = async (
  archive: Pack,
  { copy, dataDir, now }: { readonly copy: string; readonly dataDir: string; readonly now: Date },
): Promise<void> => {
  for (const folder of SECRET_FOLDERS.filter((each) => existsSync(join(dataDir, each)))) {
    archive.entry({ name: `${folder}/`, type: 'directory', mode: 0o700, mtime: now });
    for (const name of (await readdir(join(dataDir, folder))).sort()) {
      const file = join(dataDir, folder, name);
      if ((await lstat(file)).isFile())
        archive.entry({ name: `${folder}/${name}`, mode: 0o600, mtime: now }, await readFile(file));
    }
  }
  const { size } = await lstat(copy);
  // it throws where all was called off: then no file is opened
  const entry = archive.entry({ name: 'sandpool.db', size, mode: 0o600, mtime: now });
  await pipeline(createReadStream(copy), entry);
  archive.finalize();
};

/** Settles once the child has ended, also where it is called off. */
const copyByChild = async (from: string, to: string, signal: AbortSignal): Promise<void> => {
  const child = atUsualPriority(
    withPipes(spawn('cp', ['--', from, to], { signal, stdio: ['ignore', 'ignore', 'pipe'] })),
  );
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-1_000);
  });
  child.once('error', (error) => {
    complaint ||= error.message;
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`the database can't be copied: ${complaint.trim()}`);
};
