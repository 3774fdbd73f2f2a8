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
} from '../../../model/refusals.ts';

/** Returns what the client is told of a failure of the driver's files; any other error as it is. */
export const fileRefusalOf = (error: unknown, container: string | undefined): unknown => {
  if (error instanceof InstanceGone) return sandboxNotFound();
  if (error instanceof ContainerGone) return containerNotRunning(container);
  if (!(error instanceof FileRefused)) return error;
  const { message } = error;
  switch (error.problem) {
    case 'not-found':
      return fileNotFound();
    case 'exists':
      return fileExists();
    case 'changed':
      return fileChanged();
    case 'is-a-folder':
      return fileConflict(message, 'ask for it as application/x-tar, or list it');
    case 'not-a-folder':
    case 'not-a-file':
    case 'cannot-move':
    case 'busy':
      return fileConflict(message);
    case 'not-empty':
      return fileConflict(message, 'recursive=true removes what is in it too');
    case 'denied':
      return fileDenied();
    case 'no-space':
      return noSpace();
    case 'bad-path':
      return invalidArgument('path', message);
    case 'bad-cursor':
      return invalidArgument('cursor', message);
    case 'bad-archive':
      return invalidArgument('body', message);
    case 'bad-range':
      return rangeNotSatisfiable(error.size ?? 0);
    case 'no-metadata':
      return metadataNotKept(message);
    case 'too-many':
      return unavailable(message);
    case 'unsupported':
      return noFilesHere(message);
  }
};
