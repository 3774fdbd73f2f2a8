import { statSync } from 'node:fs';
import { connect, type Connection } from './database-library.ts';
import { APPLICATION_ID, SCHEMA_VERSION } from './migrations.ts';

/**
 * Looks at a database that nobody holds; takes a second or so per gigabyte. `fault` says why no
 * daemon could go on with it. Hazard: the caller must hold the data folder. What a killed daemon
 * left in the log beside it is written into it.
 */
export const inspectDatabase = (
  file: string,
): { readonly size: number; readonly fault: string | undefined } => {
  const { size } = statSync(file);
  const connection = connect(file, { busyTimeoutMs: 0 });
  try {
    return { size, fault: faultOf(connection) };
  } finally {
    connection.close();
  }
};

/** Says why no daemon could go on with the database; undefined if one could. */
export const faultOf = (connection: Connection): string | undefined => {
  const first = (pragma: string): unknown =>
    Object.values(
      connection.prepare(`PRAGMA ${pragma}`).get() as Readonly<Record<string, unknown>>,
    )[0];
  try {
    const version = Number(first('user_version'));
    if (Number(first('application_id')) !== APPLICATION_ID)
      return 'it is a database, but not one of sandpool';
    if (version > SCHEMA_VERSION)
      return (
        `a newer version of Sandpool wrote it (schema ${version}, this one knows ` +
        `${SCHEMA_VERSION})`
      );
    const found = first('quick_check(1)');
    return found === 'ok' ? undefined : `it is damaged: ${String(found).split('\n')[0] ?? ''}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};
