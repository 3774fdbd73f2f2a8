import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { isAlive, type ProcessIdentity } from './sandbox/process-identity.ts';

const FLAGS = constants.O_RDWR | constants.O_NOCTTY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/**
 * The device number of /dev/ptmx as stat tells it, major 5 and minor 2: each open of it makes a new
 * terminal.
 */
const PTMX_DEVICE = (5 << 8) | 2;

/**
 * Opens the master of a new terminal: one of the sandbox's own, which has a name in its /dev/pts;
 * where there is none to be had, because the sandbox took all that sandboxes may have, one of the
 * host's, which keeps some for itself (kernel.pty.reserve). Throws where there is none either.
 */
export const openMaster = (sandbox: ProcessIdentity | undefined): number =>
  (sandbox && masterWithin(sandbox)) ?? openSync('/dev/ptmx', FLAGS & ~constants.O_NOFOLLOW);

/**
 * The path can be trusted: nobody inside can change /dev, which is read-only, or mount anything.
 * That the process still runs afterwards says that the pid was its own before, too.
 */
const masterWithin = (init: ProcessIdentity): number | undefined => {
  let master: number;
  try {
    master = openSync(`/proc/${init.pid}/root/dev/pts/ptmx`, FLAGS);
  } catch {
    return undefined;
  }
  if (fstatSync(master).rdev === PTMX_DEVICE && isAlive(init)) return master;
  closeSync(master);
  return undefined;
};
