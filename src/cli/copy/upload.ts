import { posix } from 'node:path';
import { unpackArchive, writeFile } from '../client/files.ts';
import { CliFailure } from '../common/failure.ts';
import { folderSource } from './archives.ts';
import { fileSource, isFolderHere, type Source, streamSource } from '../common/local-files.ts';
import type { Place } from './place.ts';
import { isFolderThere, type SandboxPlace, saysNo } from './sandbox-place.ts';
import { type Copy, Transfer } from './transfer.ts';

export const upload = async (copy: Copy, from: Place, to: SandboxPlace): Promise<void> => {
  if (from.kind === 'here' && (await isFolderHere(from.path)))
    return await uploadFolder(copy, folderSource(from.path, copy.leftOut), to);
  if (from.kind === 'here') return await uploadFile(copy, await fileSource(from.path), to);
  try {
    await uploadFile(copy, streamSource(copy.context.stdin), to);
  } finally {
    copy.context.stdin.destroy(); // the writer gets an error instead of writing for nobody
  }
};

const uploadFile = async (copy: Copy, source: Source, to: SandboxPlace): Promise<void> => {
  const path = await fileTarget(to, source.name);
  const transfer = new Transfer({
    ...copy,
    name: source.name ?? 'the input',
    size: source.size,
    after: (whole) =>
      whole
        ? `${path} is unchanged, or the copy is complete`
        : `${path} in the sandbox is unchanged`,
  });
  const content = transfer.through(source.bytes);
  const { mode } = source;
  const { api, sandboxId, signal } = to;
  try {
    await transfer.run(() => writeFile(api, { sandboxId, path, signal }, { content, mode }));
  } catch (error) {
    throw withoutFolder(error, path);
  }
};

/** A folder gets the file under its name. */
const fileTarget = async (to: SandboxPlace, name: string | undefined): Promise<string> => {
  if (await isFolderThere(to)) {
    if (name === undefined) throw new CliFailure(`${to.path} is a folder: name the file`);
    return posix.join(to.path, name);
  }
  if (to.path.endsWith('/')) throw new CliFailure(`there is no folder ${to.path} in the sandbox`);
  return to.path;
};

/** An existing folder gets the source under its own name. */
const uploadFolder = async (copy: Copy, source: Source, to: SandboxPlace): Promise<void> => {
  const { name = '', bytes, size } = source;
  const isThere = await isFolderThere(to);
  if (isThere === false)
    throw new CliFailure(`${to.path} in the sandbox is a file, but ${name} is a folder`);
  const path = isThere ? posix.join(to.path, name) : to.path;
  const { api, sandboxId, signal } = to;
  const folder = { ...to, path };
  if ((await isFolderThere(folder)) === undefined)
    await api.call('makeFolder', { params: { sandboxId }, body: { path, parents: true }, signal });
  const after = (): string => `the part that arrived is in ${path} in the sandbox`;
  const transfer = new Transfer({ ...copy, name, size, after });
  await transfer.run(() =>
    unpackArchive(api, { sandboxId, path, signal }, transfer.through(bytes)),
  );
};

const withoutFolder = (error: unknown, path: string): unknown =>
  saysNo(error, 'FILE_NOT_FOUND') ||
  (error instanceof CliFailure && saysNo(error.cause, 'FILE_NOT_FOUND'))
    ? new CliFailure(`there is no folder ${posix.dirname(path)} in the sandbox`)
    : error;
