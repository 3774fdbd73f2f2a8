import { closeSync, constants, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

/**
 * Connects through the folder's descriptor, because process ids are too long for a socket's path.
 * Throws if the folder does not exist.
 */
export const connectHolder = (folder: string, processId: string): Socket => {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return connect(`/proc/self/fd/${fd}/${processId}`);
  } finally {
    closeSync(fd);
  }
};

/** Terminals of connections are not listed and have their own bounds. */
export const isTerminal = (processId: string): boolean => processId.startsWith('.');
