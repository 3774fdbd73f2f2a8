import {
  RecordExists,
  type RecordChange,
  type Records,
  type RecordStore,
} from '../../contracts/record-store.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { Log } from '../../contracts/log.ts';
import type { Revision } from '../../model/identifiers.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { Database } from './database.ts';
import { revisionNumber } from './sqlite-instance-records.ts';

/** A revision is a whole number, never reused in the file. */
export const sqliteRecordStore = (database: Database, log: Log): RecordStore => ({
  templates: recordsOf({
    database,
    log,
    kind: 'templates',
    keyOf: ({ name }) => name,
    uniqueOf: () => [],
    namedBy: (key) => [key],
  }),
  pools: recordsOf({
    database,
    log,
    kind: 'pools',
    keyOf: ({ uid }) => uid,
    uniqueOf: ({ owner, name }) => [owner.namespace, name],
    namedBy: namespaceAndName,
  }),
  envs: recordsOf({
    database,
    log,
    kind: 'envs',
    keyOf: ({ uid }) => uid,
    uniqueOf: ({ owner, name }) => [owner.namespace, name],
    namedBy: namespaceAndName,
  }),
  apiKeys: recordsOf({
    database,
    log,
    kind: 'apiKeys',
    keyOf: ({ keyId }) => keyId,
    uniqueOf: ({ namespace, shortName }) => [namespace, shortName],
    namedBy: (key) => (key.includes('/') ? ['', ...key.split('/')] : [key, '', '']),
  }),
  approvals: recordsOf({
    database,
    log,
    kind: 'approvals',
    keyOf: ({ id }) => id,
    uniqueOf: () => [],
    namedBy: (key) => [key.slice(key.indexOf('/') + 1)],
  }),
  quotas: recordsOf({
    database,
    log,
    kind: 'quotas',
    keyOf: tenantKey,
    uniqueOf: () => [],
    namedBy: (key) => [key],
  }),
  clusters: recordsOf({
    database,
    log,
    kind: 'clusters',
    keyOf: ({ clusterId }) => clusterId,
    uniqueOf: () => [],
    namedBy: (key) => [key],
  }),
});

const namespaceAndName = (key: string): readonly string[] => [
  key.slice(0, key.indexOf('/')),
  key.slice(key.indexOf('/') + 1),
];

interface Kind<T extends { readonly revision: Revision }> {
  readonly database: Database;
  readonly log: Log;
  /** Table in the statements. */
  readonly kind: keyof RecordStore;
  readonly keyOf: (record: Omit<T, 'revision'>) => string;
  /** Must be unique together. */
  readonly uniqueOf: (record: Omit<T, 'revision'>) => readonly string[];
  readonly namedBy: (key: string) => readonly string[];
}

const recordsOf = <T extends { readonly revision: Revision }>(of: Kind<T>): Records<T> => {
  const { database, kind, keyOf, uniqueOf, namedBy } = of;
  const conflict = (record: T): RecordConflict =>
    new RecordConflict(`${kind}: ${keyOf(record)} has moved on or is gone`);
  const followers = new Followers(of);
  const list = async (): Promise<readonly T[]> =>
    (await database.run(`${kind}.list`)).map(([revision, body]) => recordIn<T>(revision, body));
  return {
    list,
    get: async (key) => {
      const [row] = await database.run(`${kind}.get`, ...namedBy(key));
      return row && recordIn<T>(row[0], row[1]);
    },
    create: async (draft) => {
      const [row] = await database.run(
        `${kind}.create`,
        keyOf(draft),
        ...uniqueOf(draft),
        bodyOf(draft),
      );
      if (!row)
        throw new RecordExists(`${kind}: ${[keyOf(draft), ...uniqueOf(draft)].join(' ')} is taken`);
      const record = { ...draft, revision: String(row[0]) } as T;
      followers.tell({ kind: 'put', record });
      return record;
    },
    update: async (seen) => {
      const [row] = await database.run(
        `${kind}.update`,
        bodyOf(seen),
        keyOf(seen),
        revisionNumber(seen.revision),
      );
      if (!row) throw conflict(seen);
      const record = { ...seen, revision: String(row[0]) };
      followers.tell({ kind: 'put', record });
      return record;
    },
    remove: async (record) => {
      const [row] = await database.run(
        `${kind}.remove`,
        keyOf(record),
        revisionNumber(record.revision),
      );
      if (!row) throw conflict(record);
      followers.tell({ kind: 'gone', record });
    },
    caughtUp: async () => undefined, // the writer reports each change
    watch: (report) => followers.follow(report, list),
  };
};

/** Only this process writes to the file. */
class Followers<T extends { readonly revision: Revision }> {
  readonly #of: Kind<T>;
  readonly #reports = new Set<(change: RecordChange<T>) => void>();

  constructor(of: Kind<T>) {
    this.#of = of;
  }

  tell(change: RecordChange<T>): void {
    for (const report of this.#reports) report(change);
  }

  /** Changes committed during the first pass wait for its end. */
  async follow(
    report: (change: RecordChange<T>) => void,
    list: () => Promise<readonly T[]>,
  ): Promise<void> {
    const { kind, keyOf, log } = this.#of;
    const safely = (change: RecordChange<T>): void => {
      try {
        report(change);
      } catch (error) {
        log.error({ kind, error }, 'record-change-not-applied');
      }
    };
    let early: RecordChange<T>[] | undefined = [];
    const follower = (change: RecordChange<T>): void => {
      if (early) early.push(change);
      else safely(change);
    };
    this.#reports.add(follower);
    try {
      const standing = new Map((await list()).map((record) => [keyOf(record), record]));
      for (const record of standing.values()) safely({ kind: 'put', record });
      for (const change of early)
        if (!isOlder(change, standing.get(keyOf(change.record)))) safely(change);
      early = undefined;
    } catch (error) {
      this.#reports.delete(follower);
      throw error;
    }
  }
}

/** The first pass has already reported a later state. */
const isOlder = <T extends { readonly revision: Revision }>(
  { record }: RecordChange<T>,
  standing: T | undefined,
): boolean =>
  standing !== undefined && revisionNumber(record.revision) < revisionNumber(standing.revision);

const recordIn = <T>(revision: unknown, body: unknown): T =>
  ({ ...JSON.parse(String(body)), revision: String(revision) }) as T;

/** The revision has its own column. */
const bodyOf = (record: object): string => JSON.stringify({ ...record, revision: undefined });
