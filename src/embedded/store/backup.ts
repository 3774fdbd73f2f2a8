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

/** For gigabytes on a slow disk. */
const COPY_DEADLINE_MS = 10 * 60_000;
const FAST = 1;
/** Identity and keys of the daemon, and a fleet's cluster. */
const SECRET_FOLDERS = ['keys', 'fleet'];

/**
 * A gzipped tar of the data folder: `sandpool.db`, `keys/` and `fleet/`.
 *
 * Requests continue: a child process copies the file while checkpoints are off. The copy is removed
 * before the stream closes. Rejects if a backup is in progress, and once `signal` is aborted; no
 * work remains then.
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
  let removed = Promise.resolve();
  return async (signal) => {
    try {
      await database.whileStill(async (file) => {
        await removed;
        await remove();
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
        removed = remove().catch(() => undefined);
        const told = (): void => done(error);
        void removed.then(told);
      },
    });
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
  // throws if aborted: then opens no file
  const entry = archive.entry({ name: 'sandpool.db', size, mode: 0o600, mtime: now });
  await pipeline(createReadStream(copy), entry);
  archive.finalize();
};

/** Settles after the child has ended, also on an abort. */
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
