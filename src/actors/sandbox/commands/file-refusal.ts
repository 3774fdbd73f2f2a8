import { FileRefused } from '../../../contracts/files.ts';
import { ContainerGone, InstanceGone } from '../../../contracts/sandbox-driver.ts';
import {
  fileChanged,
  fileConflict,
  fileDenied,
  fileExists,
  fileNotFound,
  metadataNotKept,
  noFilesHere,
  noSpace,
  rangeNotSatisfiable,
} from '../../../model/file-refusals.ts';
import {
  unavailable,
  containerNotRunning,
  invalidArgument,
  sandboxNotFound,
  type Refusal,
} from '../../../model/refusals.ts';

export const fileRefusalOf = (error: unknown, container: string | undefined): unknown => {
  if (error instanceof InstanceGone) return sandboxNotFound();
  if (error instanceof ContainerGone) return containerNotRunning(container);
  if (!(error instanceof FileRefused)) return error;
  return REFUSALS[error.problem](error);
};

const REFUSALS: Readonly<Record<FileRefused['problem'], (error: FileRefused) => Refusal>> = {
  'not-found': () => fileNotFound(),
  exists: () => fileExists(),
  changed: () => fileChanged(),
  'is-a-folder': ({ message }) =>
    fileConflict(message, 'request it as application/x-tar, or list it'),
  'not-a-folder': ({ message }) => fileConflict(message),
  'not-a-file': ({ message }) => fileConflict(message),
  'cannot-move': ({ message }) => fileConflict(message),
  busy: ({ message }) => fileConflict(message),
  'not-empty': ({ message }) =>
    fileConflict(message, 'recursive=true also removes everything in it'),
  denied: () => fileDenied(),
  'no-space': () => noSpace(),
  'bad-path': ({ message }) => invalidArgument('path', message),
  'bad-cursor': ({ message }) => invalidArgument('cursor', message),
  'bad-archive': ({ message }) => invalidArgument('body', message),
  'bad-range': ({ size = 0 }) => rangeNotSatisfiable(size),
  'no-metadata': ({ message }) => metadataNotKept(message),
  'too-many': ({ message }) => unavailable(message),
  unsupported: ({ message }) => noFilesHere(message),
};
