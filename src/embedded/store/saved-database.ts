import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from './database-library.ts';
import { faultOf } from './inspect-database.ts';

/**
 * Deletes idle instances, and leaves no log beside the file.
 *
 * An idle instance may have been claimed after the backup; without a record the daemon ends its
 * process. Throws if the file is not a sound database of ours. No other process may hold it.
 */
export const readySavedDatabase = (file: string): void => {
  const connection = connect(file, { busyTimeoutMs: 0 });
  try {
    const fault = faultOf(connection, file);
    if (fault !== undefined) throw new Error(fault.message);
    connection.exec("DELETE FROM instances WHERE state = 'idle'");
    connection.exec('PRAGMA journal_mode = DELETE');
  } finally {
    connection.close();
  }
};

/** Remains if a restore was killed. */
export const UNFINISHED_RESTORE = 'restore-unfinished';

/** Throws after an interrupted restore. */
export const requireWholeRestore = (dataDir: string): void => {
  if (existsSync(join(dataDir, UNFINISHED_RESTORE)))
    throw new Error(
      `a restore of ${dataDir} was interrupted: run sandpool restore FILE again to finish it`,
    );
};
