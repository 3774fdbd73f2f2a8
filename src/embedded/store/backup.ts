import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, existsSync } from 'node:fs';
import { chmod, lstat, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { pack, type Pack } from 'tar-stream';
import type { Clock } from '../../contracts/clock.ts';
import type { Database } from './database.ts';
import { atUsualPriority } from '../../lib/priority.ts';

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
 * sent, however slow its reader. The copy goes with the stream. Rejects where a backup is under way
 * already.
 */
export const embeddedBackup =
  ({ database, dataDir, clock }: BackupDeps) =>
  async (signal: AbortSignal): Promise<Readable> => {
    const folder = join(dataDir, 'backup');
    const copy = join(folder, 'sandpool.db');
    const remove = async (): Promise<void> => {
      await rm(folder, { recursive: true, force: true });
    };
    try {
      await database.whileStill(async (file) => {
        await remove(); // what an earlier daemon may have left
        await mkdir(folder, { mode: 0o700 });
        await copyByChild(
          file,
          copy,
          AbortSignal.any([signal, AbortSignal.timeout(COPY_DEADLINE_MS)]),
        );
      });
      await chmod(copy, 0o600);
    } catch (error) {
      await remove();
      throw error;
    }
    const archive = pack();
    const stream = archive.pipe(createGzip({ level: FAST }));
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
    finished(stream)
      .catch(() => undefined)
      .then(async () => {
        archive.destroy();
        await remove();
      })
      .catch(() => undefined); // the next one removes it
    return stream;
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
  await pipeline(
    createReadStream(copy),
    archive.entry({ name: 'sandpool.db', size, mode: 0o600, mtime: now }),
  );
  archive.finalize();
};

const copyByChild = async (from: string, to: string, signal: AbortSignal): Promise<void> => {
  const child = atUsualPriority(
    spawn('cp', ['--', from, to], { signal, stdio: ['ignore', 'ignore', 'pipe'] }),
  );
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-1_000);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the database can't be copied: ${complaint.trim()}`);
};
