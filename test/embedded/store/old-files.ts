import { connect, type Connection } from '../../../src/embedded/store/database-library.ts';
import { migrate } from '../../../src/embedded/store/migrations.ts';

/** Opens the file directly, as no daemon does, for as long as `use` takes. */
export const directly = <T>(path: string, use: (connection: Connection) => T): T => {
  const connection = connect(path, { busyTimeoutMs: 0 });
  try {
    return use(connection);
  } finally {
    connection.close();
  }
};

/**
 * A file as the first released schema kept it, with a claimed instance, a template and a pool.
 * Written by hand, so that it stays what it was.
 */
export const writeVersion1 = (path: string): void => {
  directly(path, (connection) => {
    migrate(connection, path, 1);
    connection.exec(`
      INSERT INTO instances VALUES (1, '018bcfe5-6800-7000-8000-000000000001', 2, 'claimed', 'alpha', 'alpha', 'alice',
        1700000001000, 0, 0, NULL, NULL,
        '{"poolUid":"u1","poolName":"default","poolOwner":{"namespace":"alpha","team":"alpha","user":"alice"},"createdAt":1700000000000,"updateRevision":"r1","cpu":"1","memory":"128Mi","containerImages":{"main":"host"},"startupTimeoutMs":10000}',
        '{"containers":[],"network":"none","startupTimeoutMs":10000,"idleTimeoutMs":0,"maxLifetimeMs":0,"cpu":"1","memory":"128Mi"}');
      INSERT INTO templates VALUES ('small', 7, '{"name":"small","version":"1","createdAt":1,"document":{}}');
      INSERT INTO pools VALUES ('u1', 8, 'alpha', 'default', '{"uid":"u1","name":"default","replicas":2,"templateName":"small","templateVersion":"1"}');
    `);
  });
};
