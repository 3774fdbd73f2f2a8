import type { Command } from 'commander';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Action } from '../../common/action.ts';
import { withInterrupts } from '../../common/borrowed-sandbox.ts';
import { dataDirOf } from '../../common/connection.ts';
import { type CliContext, print } from '../../common/context.ts';
import { askDaemon } from '../../common/control.ts';
import { writeStream } from '../../common/local-files.ts';
import { CliFailure } from '../../common/failure.ts';
import { leaf } from '../../common/leaf.ts';
import { bytes, progressOn } from '../../terminal/progress.ts';

export const backupLeaf = (action: Action): Command =>
  leaf({
    usage: 'backup <file>',
    summary:
      'Writes a backup of the running local daemon to a file: its current database and its ' +
      'keys. The daemon keeps serving requests. The file is a gzipped tar with secrets; ' +
      'sandpool restore restores it. - is standard output.',
    examples: [
      'sandpool backup sandpool-backup.tar.gz',
      'sandpool backup - | ssh safe "cat > sandpool.tar.gz"',
    ],
  })
    .option('--data-dir <dir>', 'data folder of the daemon [SANDPOOL_DATA_DIR]')
    .action(
      action(1, async (context, [file], options: { readonly dataDir?: string }) => {
        const target = String(file);
        if (target === '-' && context.stdout.isTTY)
          throw new CliFailure('a backup cannot be printed on a terminal', [
            'name a file, or use a pipe',
          ]);
        const dataDir = await dataDirOf(options, context.env);
        return await withInterrupts(async (signal) => {
          const received = receive(
            await askDaemon(dataDir, '/backup', { signal }),
            context,
            target,
          );
          if (target === '-') {
            await writeStream(context.stdout, received);
          } else {
            await print(
              context.stdout,
              `${target}: ${bytes(await writeWhole(target, received))}\n`,
            );
          }
          return 0;
        });
      }),
    );

async function* receive(
  answer: AsyncIterable<Buffer>,
  context: CliContext,
  name: string,
): AsyncGenerator<Buffer, void, undefined> {
  const progress = progressOn(context);
  let done = 0;
  try {
    for await (const chunk of answer) {
      yield chunk;
      done += chunk.length;
      progress.tell(`${name}: ${bytes(done)}`);
    }
  } catch (error) {
    throw new CliFailure(
      'the daemon ended the backup before it was complete',
      ["see the daemon's log for the cause"],
      { cause: error },
    );
  } finally {
    progress.end();
  }
}

/** Atomic and synced to disk. Resolves with the size. */
const writeWhole = async (path: string, received: AsyncIterable<Buffer>): Promise<number> => {
  const temporary = join(dirname(path), `.${basename(path)}.sandpool-${process.pid}`);
  try {
    await synced(await open(temporary, 'wx', 0o600), async (file) => {
      for await (const chunk of received) await file.writeFile(chunk);
    });
    await rename(temporary, path);
    await synced(await open(dirname(path), 'r'), async () => {});
  } catch (error) {
    await rm(temporary, { force: true });
    if (error instanceof CliFailure || !(error instanceof Error && 'code' in error)) throw error;
    throw new CliFailure(`${path} can’t be written: ${error.message}`, [], { cause: error });
  }
  return (await stat(path)).size;
};

const synced = async (
  file: FileHandle,
  use: (file: FileHandle) => Promise<void>,
): Promise<void> => {
  try {
    await use(file);
    await file.sync();
  } finally {
    await file.close();
  }
};
