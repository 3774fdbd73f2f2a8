import { closeSync, constants, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

/**
 * Connects to the holder of a process. Process ids are too long for a socket's path, so the path
 * goes through the folder's descriptor. Throws if the folder does not exist.
 */
export const connectHolder = (folder: string, processId: string): Socket => {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return connect(`/proc/self/fd/${fd}/${processId}`);
  } finally {
    closeSync(fd);
  }
};

/**
 * Returns whether the id belongs to the terminal of a connection. Such terminals are not listed and
 * have their own bounds.
 */
export const isTerminal = (processId: string): boolean => processId.startsWith('.');
