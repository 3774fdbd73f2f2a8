import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from './database-library.ts';
import { faultOf } from './inspect-database.ts';

/**
 * Prepares a backup's database for use in a data folder. Deletes idle instances, and leaves no log
 * beside the file.
 *
 * An idle instance may have been claimed after the backup; without a record the daemon ends its
 * process and starts another. Throws if the file is not a sound database of this version or an
 * earlier one. No other process may hold the file.
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

/** Marks a data folder while a restore replaces its files. Remains if the restore was killed. */
export const UNFINISHED_RESTORE = 'restore-unfinished';

/** Throws if an interrupted restore left files from before it. */
export const requireWholeRestore = (dataDir: string): void => {
  if (existsSync(join(dataDir, UNFINISHED_RESTORE)))
    throw new Error(
      `a restore of ${dataDir} was interrupted: run sandpool restore FILE again to finish it`,
    );
};
