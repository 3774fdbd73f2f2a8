import { RecordExists, type Records, type RecordStore } from '../contracts/record-store.ts';
import { RecordConflict } from '../contracts/sandbox-driver.ts';
import type { Revision } from '../model/identifiers.ts';
import type { Database } from './database.ts';
import { revisionNumber } from './revision-number.ts';

/** Templates, pools and API keys in SQLite. A revision is a whole number that no other record of the file ever had. */
export const sqliteRecordStore = (database: Database): RecordStore => ({
  templates: recordsOf(database, 'templates', ({ name }) => name, () => []),
  pools: recordsOf(database, 'pools', ({ uid }) => uid, ({ owner, name }) => [owner.namespace, name]),
  apiKeys: recordsOf(database, 'apiKeys', ({ keyId }) => keyId, ({ namespace, shortName }) => [namespace, shortName]),
});

/** One kind: its table by the name its statements have, the key it is found by, and what else of it must be unique. */
const recordsOf = <T extends { readonly revision: Revision }>(
  database: Database,
  kind: 'templates' | 'pools' | 'apiKeys',
  keyOf: (record: Omit<T, 'revision'>) => string,
  uniqueOf: (record: Omit<T, 'revision'>) => readonly string[],
): Records<T> => {
  const conflict = (record: T): RecordConflict => new RecordConflict(`${kind}: ${keyOf(record)} has moved on or is gone`);
  return {
    list: async () => (await database.run(`${kind}.list`))
      .map(([revision, body]) => ({ ...JSON.parse(String(body)), revision: String(revision) }) as T),
    create: async (record) => {
      const [row] = await database.run(`${kind}.create`, keyOf(record), ...uniqueOf(record), bodyOf(record));
      if (!row) throw new RecordExists(`${kind}: ${[keyOf(record), ...uniqueOf(record)].join(' ')} is taken`);
      return { ...record, revision: String(row[0]) } as T;
    },
    update: async (record) => {
      const [row] = await database.run(`${kind}.update`, bodyOf(record), keyOf(record), revisionNumber(record.revision));
      if (!row) throw conflict(record);
      return { ...record, revision: String(row[0]) };
    },
    remove: async (record) => {
      const [row] = await database.run(`${kind}.remove`, keyOf(record), revisionNumber(record.revision));
      if (!row) throw conflict(record);
    },
  };
};

/** The whole record but its revision, which has a column of its own. */
const bodyOf = (record: object): string => JSON.stringify({ ...record, revision: undefined });
