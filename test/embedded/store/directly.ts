import { connect, type Connection } from '../../../src/embedded/store/database-library.ts';

/** Opens the file directly, as no daemon does, for as long as `use` takes. */
export const directly = <T>(path: string, use: (connection: Connection) => T): T => {
  const connection = connect(path, { busyTimeoutMs: 0 });
  try {
    return use(connection);
  } finally {
    connection.close();
  }
};
