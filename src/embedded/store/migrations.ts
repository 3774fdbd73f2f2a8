import type { Connection } from './database-library.ts';
import { POOL_EVENTS } from './pool-events-schema.ts';

/**
 * `locked`: another process holds it. `newer`: a later version wrote it. `foreign`: no database of
 * ours. `broken`: the rest.
 */
export type RefusalToOpen = 'locked' | 'newer' | 'foreign' | 'broken';

/** The file can't be used by this daemon. The message says what to do. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
  readonly why: RefusalToOpen;

  constructor(why: RefusalToOpen, message: string) {
    super(message);
    this.why = why;
  }
}

/**
 * Brings the file to this daemon's schema version, one transaction per step. Throws DatabaseRefused
 * for a file of a later version, or one that isn't ours. `upTo` stops early, to build a file as an
 * older daemon left it.
 */
export const migrate = (connection: Connection, path: string, upTo = MIGRATIONS.length): void => {
  const version = versionOf(connection, path);
  if (version > MIGRATIONS.length) {
    throw new DatabaseRefused(
      'newer',
      `${path} has schema version ${version}, and this sandpool knows up to ` +
        `${MIGRATIONS.length}: ` +
        'start the newer sandpool that wrote it, or choose another data folder',
    );
  }
  for (let next = version; next < upTo; next += 1) {
    connection.exec('BEGIN IMMEDIATE');
    try {
      connection.exec(MIGRATIONS[next] ?? '');
      connection.exec(
        `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${next + 1}`,
      );
      connection.exec('COMMIT');
    } catch (error) {
      if (connection.isTransaction) connection.exec('ROLLBACK');
      throw error;
    }
  }
};

/** `SPdb` in ASCII. */
const APPLICATION_ID = 0x53_50_64_62;

const versionOf = (connection: Connection, path: string): number => {
  const version = pragma(connection, 'user_version');
  const objects = Number(
    Object.values(connection.prepare('SELECT COUNT(*) FROM sqlite_schema').get())[0],
  );
  const ours = pragma(connection, 'application_id') === APPLICATION_ID;
  if (!ours && (version !== 0 || objects > 0)) {
    throw new DatabaseRefused(
      'foreign',
      `${path} is a database, but not one of sandpool: choose another data folder`,
    );
  }
  return version;
};

const pragma = (connection: Connection, name: string): number =>
  Number(Object.values(connection.prepare(`PRAGMA ${name}`).get())[0]);

/**
 * What history_bytes counts: whose a row is, and what it counts in bytes, where its columns have
 * this prefix.
 */
const COUNTED = [
  {
    table: 'history',
    owner: (row: string) => `${row}owner`,
    bytes: (row: string) => `length(CAST(${row}body AS BLOB)) + 400`,
  },
  {
    table: 'sandbox_events',
    owner: (row: string) =>
      ['namespace', 'team', 'user']
        .map((part) => `(${row}body ->> '$.owner.${part}')`)
        .join(` || '/' || `),
    bytes: (row: string) => `length(CAST(${row}body AS BLOB)) + 100`,
  },
] as const;

/** Never edited once released: a change of the schema is a new step at the end. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE instances (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('idle', 'claimed', 'ending')),
    owner_namespace TEXT, owner_team TEXT, owner_user TEXT,
    claimed_at INTEGER, idle_timeout_ms INTEGER, max_lifetime_ms INTEGER,
    end_reason TEXT, exit_code INTEGER,
    birth TEXT NOT NULL,
    definition TEXT NOT NULL,
    CHECK ((state = 'idle') = (claimed_at IS NULL)),
    CHECK ((state = 'ending') = (end_reason IS NOT NULL))
  ) STRICT;

  -- Revisions of all records come from one counter, so that a name that is deleted and made again repeats none.
  CREATE TABLE record_revision (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL) STRICT;
  INSERT INTO record_revision VALUES (1, 0);

  CREATE TABLE templates (
    name TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE TABLE pools (
    uid TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (namespace, name)
  ) STRICT;
  CREATE TABLE api_keys (
    key_id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL,
    namespace TEXT NOT NULL, short_name TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (namespace, short_name)
  ) STRICT;
  ${['templates', 'pools', 'api_keys']
    .map((table) =>
      ['INSERT', 'UPDATE']
        .map(
          (event) => `
  CREATE TRIGGER ${table}_revision_on_${event.toLowerCase()} AFTER ${event} ON ${table} BEGIN
    UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
  END;`,
        )
        .join(''),
    )
    .join('')}
  `,
  `
  -- One row per owner and pool.
  CREATE TABLE history_groups (
    group_id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL, team TEXT NOT NULL, user TEXT NOT NULL, pool_name TEXT NOT NULL,
    UNIQUE (namespace, team, user, pool_name)
  ) STRICT;
  -- How many of a group ended in each ten minutes: totals are sums over these, with less than ten minutes counted.
  CREATE TABLE history_counts (
    group_id INTEGER NOT NULL, bucket INTEGER NOT NULL, finished INTEGER NOT NULL,
    PRIMARY KEY (group_id, bucket)
  ) STRICT, WITHOUT ROWID;
  -- owner is namespace/team/user. The indexes by claim hold all that a filter asks, so that a walk reads no rows.
  CREATE TABLE history (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    group_id INTEGER NOT NULL,
    owner TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    terminated_at INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX history_by_claim ON history (claimed_at, id, terminated_at, group_id);
  CREATE INDEX history_of_owner_by_claim ON history (owner, claimed_at, id, terminated_at, group_id);
  CREATE INDEX history_of_group_by_end ON history (group_id, terminated_at);
  CREATE INDEX history_by_end ON history (terminated_at);

  CREATE TRIGGER history_counted AFTER INSERT ON history BEGIN
    INSERT INTO history_counts VALUES (NEW.group_id, NEW.terminated_at / 600000, 1)
      ON CONFLICT DO UPDATE SET finished = finished + 1;
  END;
  CREATE TRIGGER history_uncounted AFTER DELETE ON history BEGIN
    UPDATE history_counts SET finished = finished - 1 WHERE group_id = OLD.group_id AND bucket = OLD.terminated_at / 600000;
    DELETE FROM history_counts WHERE group_id = OLD.group_id AND bucket = OLD.terminated_at / 600000 AND finished = 0;
    DELETE FROM history_groups WHERE group_id = OLD.group_id
      AND NOT EXISTS (SELECT 1 FROM history_counts WHERE group_id = OLD.group_id);
  END;

  -- Written through this view: finds or makes the group, and keeps the first record of an id.
  CREATE VIEW finished_sandboxes AS
    SELECT h.id, g.namespace, g.team, g.user, g.pool_name, h.claimed_at, h.terminated_at, h.body
    FROM history h JOIN history_groups g USING (group_id);
  CREATE TRIGGER finished_sandboxes_insert INSTEAD OF INSERT ON finished_sandboxes
  WHEN NOT EXISTS (SELECT 1 FROM history WHERE id = NEW.id) BEGIN
    INSERT INTO history_groups (namespace, team, user, pool_name) VALUES (NEW.namespace, NEW.team, NEW.user, NEW.pool_name)
      ON CONFLICT DO NOTHING;
    INSERT INTO history (id, group_id, owner, claimed_at, terminated_at, body)
      SELECT NEW.id, group_id, NEW.namespace || '/' || NEW.team || '/' || NEW.user, NEW.claimed_at, NEW.terminated_at, NEW.body
      FROM history_groups
      WHERE namespace = NEW.namespace AND team = NEW.team AND user = NEW.user AND pool_name = NEW.pool_name;
  END;
  `,
  `
  -- The request that claimed the instance, where it carried an Idempotency-Key: hashes of the key and of the body.
  ALTER TABLE instances ADD COLUMN mark TEXT;
  -- Answers to requests with an Idempotency-Key; key and body_hash are hashes, answers with a secret are sealed.
  CREATE TABLE kept_answers (
    seq INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    principal TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    answer TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- What happened to claimed sandboxes, beyond what record and history show: the newest 50 of each, until its history goes.
  CREATE TABLE sandbox_events (
    sandbox_id TEXT NOT NULL, id INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (sandbox_id, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER sandbox_events_bounded AFTER INSERT ON sandbox_events
  WHEN (SELECT COUNT(*) FROM sandbox_events WHERE sandbox_id = NEW.sandbox_id) > 50 BEGIN
    DELETE FROM sandbox_events WHERE sandbox_id = NEW.sandbox_id
      AND id = (SELECT MIN(id) FROM sandbox_events WHERE sandbox_id = NEW.sandbox_id);
  END;
  CREATE TRIGGER sandbox_events_forgotten AFTER DELETE ON history BEGIN
    DELETE FROM sandbox_events WHERE sandbox_id = OLD.id;
  END;
  `,
  `
  -- How many of a group were claimed in each 2^20, 2^14 and 2^8 ms: by these a page far down a list is found without a walk.
  CREATE TABLE history_claims (
    group_id INTEGER NOT NULL, bits INTEGER NOT NULL, bucket INTEGER NOT NULL, finished INTEGER NOT NULL,
    PRIMARY KEY (group_id, bits, bucket)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO history_claims SELECT group_id, bits, claimed_at >> bits, COUNT(*)
    FROM history CROSS JOIN (SELECT 20 AS bits UNION ALL SELECT 14 UNION ALL SELECT 8) GROUP BY 1, 2, 3;
  CREATE TRIGGER history_claim_counted AFTER INSERT ON history BEGIN
    INSERT INTO history_claims SELECT NEW.group_id, column1, NEW.claimed_at >> column1, 1 FROM (VALUES (20), (14), (8)) WHERE true
      ON CONFLICT DO UPDATE SET finished = finished + 1;
  END;
  CREATE TRIGGER history_claim_uncounted AFTER DELETE ON history BEGIN
    UPDATE history_claims SET finished = finished - 1
      WHERE group_id = OLD.group_id AND (bits, bucket) IN (VALUES (20, OLD.claimed_at >> 20), (14, OLD.claimed_at >> 14), (8, OLD.claimed_at >> 8));
    DELETE FROM history_claims
      WHERE group_id = OLD.group_id AND (bits, bucket) IN (VALUES (20, OLD.claimed_at >> 20), (14, OLD.claimed_at >> 14), (8, OLD.claimed_at >> 8))
      AND finished = 0;
  END;
  `,
  `
  -- What a user may have, where it is not what the configuration says; tenant is namespace/team/user.
  CREATE TABLE user_quotas (
    tenant TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  ${['INSERT', 'UPDATE']
    .map(
      (event) => `
  CREATE TRIGGER user_quotas_revision_on_${event.toLowerCase()} AFTER ${event} ON user_quotas BEGIN
    UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
  END;`,
    )
    .join('')}
  `,
  `
  -- How many of a namespace there are. owner begins with the namespace.
  CREATE TABLE history_namespaces (namespace TEXT PRIMARY KEY, finished INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO history_namespaces SELECT namespace, SUM(finished) FROM history_groups JOIN history_counts USING (group_id) GROUP BY namespace;
  CREATE TRIGGER history_namespace_counted AFTER INSERT ON history BEGIN
    INSERT INTO history_namespaces VALUES (substr(NEW.owner, 1, instr(NEW.owner, '/') - 1), 1)
      ON CONFLICT DO UPDATE SET finished = finished + 1;
  END;
  CREATE TRIGGER history_namespace_uncounted AFTER DELETE ON history BEGIN
    UPDATE history_namespaces SET finished = finished - 1 WHERE namespace = substr(OLD.owner, 1, instr(OLD.owner, '/') - 1);
    DELETE FROM history_namespaces WHERE namespace = substr(OLD.owner, 1, instr(OLD.owner, '/') - 1) AND finished = 0;
  END;
  `,
  `
  -- A pool's record holds what its owner asked for; until now that was a template's name.
  UPDATE pools SET body = json_set(
    json_remove(body, '$.templateName'),
    '$.source', json_object('templateName', json_extract(body, '$.templateName')),
    '$.updateStrategy', json_object('autoUpdate', json('true'), 'maxUnavailable', '25%')
  ) WHERE json_type(body, '$.source') IS NULL;
  `,
  `
  -- Registry passwords of pools, sealed.
  CREATE TABLE pull_secrets (pool_uid TEXT NOT NULL PRIMARY KEY, sealed TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TRIGGER pull_secrets_forgotten AFTER DELETE ON pools BEGIN
    DELETE FROM pull_secrets WHERE pool_uid = OLD.uid;
  END;
  `,
  `
  CREATE TABLE envs (
    uid TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (namespace, name)
  ) STRICT;
  ${['INSERT', 'UPDATE']
    .map(
      (event) => `
  CREATE TRIGGER envs_revision_on_${event.toLowerCase()} AFTER ${event} ON envs BEGIN
    UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
  END;`,
    )
    .join('')}
  -- Registry passwords are an env's too: pool_uid is the uid of either.
  CREATE TRIGGER pull_secrets_of_envs_forgotten AFTER DELETE ON envs BEGIN
    DELETE FROM pull_secrets WHERE pool_uid = OLD.uid;
  END;
  `,
  `
  -- What autoscaling groups decided: of each the newest 100, as long as its env.
  CREATE TABLE scaling_decisions (
    env_uid TEXT NOT NULL, group_name TEXT NOT NULL, id INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (env_uid, group_name, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER scaling_decisions_bounded AFTER INSERT ON scaling_decisions BEGIN
    DELETE FROM scaling_decisions WHERE env_uid = NEW.env_uid AND group_name = NEW.group_name AND id <= (
      SELECT id FROM scaling_decisions WHERE env_uid = NEW.env_uid AND group_name = NEW.group_name ORDER BY id DESC LIMIT 1 OFFSET 100);
  END;
  CREATE TRIGGER scaling_decisions_forgotten AFTER DELETE ON envs BEGIN
    DELETE FROM scaling_decisions WHERE env_uid = OLD.uid;
  END;
  `,
  `
  -- About what finished sandboxes and events take of each owner: their text, and so much for row and indexes.
  CREATE TABLE history_bytes (owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX history_of_owner_by_end ON history (owner, terminated_at);
  INSERT INTO history_bytes SELECT owner, SUM(bytes) FROM (
    ${COUNTED.map(({ table, owner, bytes }) => `SELECT ${owner('')} AS owner, ${bytes('')} AS bytes FROM ${table}`).join(' UNION ALL ')}
  ) GROUP BY owner;
  ${COUNTED.map(
    ({ table, owner, bytes }) => `
  CREATE TRIGGER ${table}_bytes_counted AFTER INSERT ON ${table} BEGIN
    INSERT INTO history_bytes VALUES (${owner('NEW.')}, ${bytes('NEW.')}) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER ${table}_bytes_uncounted AFTER DELETE ON ${table} BEGIN
    UPDATE history_bytes SET bytes = bytes - (${bytes('OLD.')}) WHERE owner = ${owner('OLD.')};
    DELETE FROM history_bytes WHERE owner = ${owner('OLD.')} AND bytes <= 0;
  END;`,
  ).join('')}
  `,
  POOL_EVENTS,
  // What else a claim says, as JSON; see ClaimTerms.
  'ALTER TABLE instances ADD COLUMN claim_terms TEXT;',
];

export const SCHEMA_VERSION = MIGRATIONS.length;
