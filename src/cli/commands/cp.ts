import type { Command } from 'commander';
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import type { Action } from '../action.ts';
import { withInterrupts } from '../borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts';
import type { CliContext } from '../context.ts';
import { folderSource, unpackHere } from '../copy/archives.ts';
import { LeftOut } from '../copy/left-out.ts';
import {
  fileSource,
  isFolderHere,
  type Source,
  streamSource,
  writeFileHere,
  writeStream,
} from '../copy/local-files.ts';
import { type Place, placeOf } from '../copy/place.ts';
import { piecesOf, type RemoteFile, SandboxFiles } from '../copy/sandbox-files.ts';
import { CliFailure } from '../failure.ts';
import { leaf } from '../leaf.ts';
import { byteProgress, type Progress, progressOn } from '../terminal/progress.ts';

/** `cp FROM TO`: a file or a folder, into a sandbox or out of it. */
export const cpLeaf = (action: Action): Command =>
  addConnectionOptions(
    leaf({
      usage: 'cp <from> <to>',
      summary:
        'Copies a file or a folder into a running sandbox or out of it. A path in a ' +
        'sandbox is SANDBOX:PATH; - is the standard input or output. What arrives is ' +
        'compared by its digest, and put in its place as a whole. Of a folder that comes ' +
        'from a sandbox, links out of it are left out, and named.',
      examples: [
        'sandpool cp data.csv "$SANDBOX:/tmp/"',
        'sandpool cp "$SANDBOX:/tmp/result file.txt" .',
        'sandpool cp src "$SANDBOX:work"',
        'tar -c src | sandpool cp - "$SANDBOX:/tmp/src.tar"',
        'sandpool cp "$SANDBOX:/etc/os-release" - | head -1',
      ],
    }),
  ).action(
    action(1, async (context, [from, to], options: ConnectionOptions) => {
      const [source, target] = [placeOf(String(from)), placeOf(String(to))];
      if ((source.kind === 'sandbox') === (target.kind === 'sandbox')) {
        throw new CliFailure(
          source.kind === 'sandbox'
            ? 'both are in sandboxes: copy to here first'
            : 'neither is in a sandbox',
          ['a path in a sandbox is SANDBOX:PATH; sandpool sandboxes list shows the ids'],
        );
      }
      const api = await connect(options, context);
      const progress = progressOn(context);
      const leftOut = new LeftOut();
      try {
        return await withInterrupts(async (signal) => {
          if (target.kind === 'sandbox')
            await upload(
              {
                files: new SandboxFiles(api, target.sandboxId, signal),
                context,
                progress,
                leftOut,
              },
              source,
              target.path,
            );
          if (source.kind === 'sandbox')
            await download(
              {
                files: new SandboxFiles(api, source.sandboxId, signal),
                context,
                progress,
                leftOut,
              },
              source.path,
              target,
            );
          return 0;
        });
      } finally {
        progress.end();
        leftOut.tell(context);
        api.close();
      }
    }),
  );

interface Copy {
  readonly files: SandboxFiles;
  readonly context: CliContext;
  readonly progress: Progress;
  readonly leftOut: LeftOut;
}

const upload = async (copy: Copy, from: Place, to: string): Promise<void> => {
  if (from.kind === 'here' && (await isFolderHere(from.path)))
    return await uploadFolder(copy, folderSource(from.path, copy.leftOut), to);
  const source =
    from.kind === 'here' ? await fileSource(from.path) : streamSource(copy.context.stdin);
  const { files } = copy;
  const begun = await files.begin(to, source.name);
  try {
    await files.finish(begun, { sha256: await send(copy, begun, source), mode: source.mode });
  } catch (error) {
    await files.discard(begun);
    throw error;
  }
};

/** Into a folder of its name where the target is one already, else as the target. */
const uploadFolder = async (copy: Copy, source: Source, to: string): Promise<void> => {
  const { files } = copy;
  const isThere = await files.isFolder(to).catch(() => false);
  const begun = await files.begin('/tmp', '.sandpool-folder');
  try {
    const sha256 = await send(copy, begun, source);
    await files.unpack(begun, {
      sha256,
      folder: isThere ? `${to.replace(/\/+$/, '')}/${source.name ?? ''}` : to,
    });
  } catch (error) {
    await files.discard(begun);
    throw error;
  }
};

/** Returns the digest of what was sent. */
const send = async (
  { files, progress }: Copy,
  upload_: { readonly temporary: string; readonly path: string },
  { bytes, name = 'the input', size }: Source,
): Promise<string> => {
  const hash = createHash('sha256');
  let sent = 0;
  for await (const piece of piecesOf(bytes)) {
    hash.update(piece);
    await files.append(upload_, piece);
    sent += piece.length;
    progress.tell(`${name}: ${byteProgress(sent, size)}`);
  }
  return hash.digest('hex');
};

const download = async (copy: Copy, from: string, to: Place): Promise<void> => {
  const { files, context } = copy;
  const name = basename(from);
  if (await files.isFolder(from)) return await downloadFolder(copy, from, to);
  const file = await files.describe(from);
  const bytes = receive(copy, file, name);
  if (to.kind !== 'here') return await writeStream(context.stdout, bytes);
  await writeFileHere(
    (await isFolderHere(to.path)) ? join(to.path, name) : to.path,
    bytes,
    file.mode,
  );
};

const downloadFolder = async (copy: Copy, from: string, to: Place): Promise<void> => {
  const { files, context } = copy;
  const archive = await files.pack(from);
  try {
    const bytes = receive(copy, archive, basename(from));
    if (to.kind !== 'here') return await writeStream(context.stdout, bytes);
    const isThere = await isFolderHere(to.path);
    if (isThere === false) throw new CliFailure(`${to.path} is a file, and ${from} a folder`);
    await unpackHere(isThere ? join(to.path, basename(from)) : to.path, bytes, copy.leftOut);
  } finally {
    await files.discard({ temporary: archive.path });
  }
};

async function* receive(
  { files, progress }: Copy,
  file: RemoteFile,
  name: string,
): AsyncGenerator<Buffer, void, undefined> {
  let received = 0;
  for await (const piece of files.read(file)) {
    yield piece;
    received += piece.length;
    progress.tell(`${name}: ${byteProgress(received, file.size)}`);
  }
}
