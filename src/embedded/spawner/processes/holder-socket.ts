import { closeSync, constants, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

/**
 * Connects to the holder of a process. Ids are too long for the path of a socket, so the folder is
 * named by its descriptor. Throws if there is no such folder.
 */
export const connectHolder = (folder: string, processId: string): Socket => {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return connect(`/proc/self/fd/${fd}/${processId}`);
  } finally {
    closeSync(fd);
  }
};

/** Tells the terminal of a connection, which is not listed and has other bounds, from a process. */
export const isTerminal = (processId: string): boolean => processId.startsWith('.');
