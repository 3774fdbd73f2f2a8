import { statSync } from 'node:fs';
import { connect } from './database-library.ts';
import { SCHEMA_VERSION } from './migrations.ts';

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
    const [version] = Object.values(
      connection.prepare('PRAGMA user_version').get() as Readonly<Record<string, unknown>>,
    );
    if (Number(version) > SCHEMA_VERSION)
      return {
        size,
        fault:
          `a newer version of Sandpool wrote it (schema ${Number(version)}, this one knows ` +
          `${SCHEMA_VERSION})`,
      };
    const [found] = Object.values(
      connection.prepare('PRAGMA quick_check(1)').get() as Readonly<Record<string, unknown>>,
    );
    return {
      size,
      fault: found === 'ok' ? undefined : `it is damaged: ${String(found).split('\n')[0] ?? ''}`,
    };
  } catch (error) {
    return { size, fault: error instanceof Error ? error.message : String(error) };
  } finally {
    connection.close();
  }
};
