import { basename, join, posix } from 'node:path';
import { type ReadContent, readContent } from '../client/files.ts';
import { say } from '../common/context.ts';
import { CliFailure, explain } from '../common/failure.ts';
import { unpackHere } from './archives.ts';
import { isFolderHere, writeFileHere, writeStream } from '../common/local-files.ts';
import type { Place } from './place.ts';
import { type SandboxPlace, saysNo } from './sandbox-place.ts';
import { type Copy, Transfer } from './transfer.ts';
import { lstat } from 'node:fs/promises';
import type { LeftOut } from './left-out.ts';

export const download = async (copy: Copy, from: SandboxPlace, to: Place): Promise<void> => {
  const content = await openThere(from);
  try {
    if (content.kind === 'file') return await downloadFile(copy, { from, content }, to);
    const folder = await downloadFolder(copy, { from, content }, to);
    if (folder !== undefined) await askWhatIsMissing(copy, from, folder);
  } finally {
    content.close();
  }
};

/** The copy succeeded, whether this can be answered or not. */
const askWhatIsMissing = async (copy: Copy, from: SandboxPlace, folder: string): Promise<void> => {
  try {
    await noteMissing(from, folder, copy.leftOut);
  } catch (error) {
    from.signal.throwIfAborted();
    copy.progress.end();
    await say(
      copy.context,
      `${folder} was copied; could not check whether something was skipped`,
      ...explain(error),
    );
  }
};

interface Opened {
  readonly from: SandboxPlace;
  readonly content: ReadContent;
}

const openThere = async (from: SandboxPlace): Promise<ReadContent> => {
  const { api, sandboxId, path, signal } = from;
  try {
    return await readContent(api, { sandboxId, path, signal });
  } catch (error) {
    if (saysNo(error, 'FILE_NOT_FOUND'))
      throw new CliFailure(`there is no ${path} in the sandbox`, [], { cause: error });
    if (saysNo(error, 'CONFLICT'))
      throw new CliFailure(`${path} is neither a file nor a folder`, [], { cause: error });
    throw error;
  }
};

const downloadFile = async (copy: Copy, { from, content }: Opened, to: Place): Promise<void> => {
  const { size, mode = 0o644, bytes } = content;
  if (size === 0 && /^\/(proc|sys)\//.test(from.path))
    throw new CliFailure(`the kernel generates ${from.path} while it is read`, [
      `print it with a command: sandpool exec ${from.sandboxId} -- cat ${from.path}`,
    ]);
  const name = basename(from.path);
  const path =
    to.kind !== 'here' ? '' : (await isFolderHere(to.path)) ? join(to.path, name) : to.path;
  const after = (): string =>
    to.kind === 'here' ? `${path} is unchanged` : 'only the beginning was written';
  const transfer = new Transfer({ ...copy, name, size, after });
  await transfer.run(() =>
    to.kind === 'here'
      ? writeFileHere(path, transfer.through(bytes), mode & 0o777)
      : writeStream(copy.context.stdout, transfer.through(bytes)),
  );
};

/** Undefined for standard output. */
const downloadFolder = async (
  copy: Copy,
  { from, content: { bytes, size } }: Opened,
  to: Place,
): Promise<string | undefined> => {
  const name = basename(from.path);
  const isThere = to.kind === 'here' ? await isFolderHere(to.path) : undefined;
  if (to.kind === 'here' && isThere === false)
    throw new CliFailure(`${to.path} is a file, but ${from.path} is a folder`);
  const folder = to.kind !== 'here' ? undefined : isThere ? join(to.path, name) : to.path;
  const after = (): string =>
    folder === undefined
      ? 'only the beginning was written'
      : `the part that arrived is in ${folder}; its last file may be incomplete`;
  const transfer = new Transfer({ ...copy, name, size, after });
  await transfer.run(() =>
    folder === undefined
      ? writeStream(copy.context.stdout, transfer.through(bytes))
      : unpackHere(folder, transfer.through(bytes), copy.leftOut),
  );
  return folder;
};

const DEPTH = 16;
const PAGE = 10_000;
/** Folders deeper than one list goes; each needs its own. */
const MOST_FOLDERS = 1_000;

/** The service's archive omits devices, fifos, sockets and unreadable files without naming them. */
const noteMissing = async (
  { api, sandboxId, path: root, signal }: SandboxPlace,
  folder: string,
  leftOut: LeftOut,
): Promise<void> => {
  const waiting = [root];
  for (let looked = 0; waiting.length > 0 && looked < MOST_FOLDERS; looked += 1) {
    const at = waiting.shift() ?? root;
    let cursor: string | undefined;
    do {
      const query = { path: at, depth: DEPTH, limit: PAGE, cursor };
      const page = await api.call('listFiles', { params: { sandboxId }, query, signal });
      for (const { path, kind, base64 } of page.items) {
        if (base64) continue; // a name that a path here may not have
        const below = posix.relative(root, path);
        if (kind === 'Other') leftOut.add(below, 'is neither a file, a folder nor a link');
        else if (kind === 'File' && !(await isHere(join(folder, below))))
          leftOut.add(below, 'can’t be read there, or was created during the copy');
        else if (kind === 'Folder' && depthOf(posix.relative(at, path)) === DEPTH)
          if (waiting.length < MOST_FOLDERS) waiting.push(path);
      }
      cursor = page.nextCursor;
    } while (cursor !== undefined);
  }
};

const depthOf = (path: string): number => path.split('/').length;

const isHere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
