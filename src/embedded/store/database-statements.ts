/**
 * Each is a single statement, so a failure undoes only that. A write returns one row (RETURNING),
 * and none if its condition failed.
 */

const INSTANCE = `id, revision, state, owner_namespace, owner_team, owner_user, claimed_at,
  idle_timeout_ms, max_lifetime_ms, end_reason, exit_code, birth, mark, claim_terms, paused_at,
  ends_at`;
const NEXT_REVISION = '(SELECT last + 1 FROM record_revision)';

/**
 * Parameters: namespace, team, user and pool are ?1 to ?4, the time is ?5. An index finds an
 * owner's groups; other filters scan all groups.
 */
const OWNER_GROUPS =
  'namespace = ?1 AND team = ?2 AND user = ?3 AND (?4 IS NULL OR pool_name = ?4)';
const ANY_GROUPS =
  '(?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR team = ?2) AND (?3 IS NULL OR user = ' +
  '?3) AND (?4 IS NULL OR pool_name = ?4)';

/**
 * Ended at or after ?5: whole ten minutes by counts, the first part by rows. Numbers are bound as
 * REAL.
 */
const totalSince = (groups: string): string => `SELECT COALESCE(SUM(finished), 0) FROM (
  SELECT SUM(finished) AS finished FROM history_groups JOIN history_counts USING (group_id) WHERE
      ${groups} AND bucket > CAST(?5 AS INTEGER) / 600000
  UNION ALL
  SELECT COUNT(*) FROM history_groups JOIN history USING (group_id)
  WHERE ${groups} AND terminated_at >= ?5 AND terminated_at < (CAST(?5 AS INTEGER) / 600000 + 1) *
      600000)`;

/**
 * Newest claim first. Reads at most ?8 entries after the one claimed at ?6 with id ?7.
 *
 * First row: entries read, matches, claim time and id of the last entry. Then at most ?10 bodies of
 * matches after the first ?9. (CROSS: some versions of SQLite would read all of history.)
 */
const walk = (inOwner: string, groups: string): string => `
  WITH step AS MATERIALIZED (
    SELECT seq, claimed_at, id, terminated_at >= ?5 AND group_id IN (SELECT group_id FROM
        history_groups WHERE ${groups}) AS matches
    FROM history WHERE ${inOwner} (claimed_at, id) < (?6, ?7) ORDER BY claimed_at DESC, id DESC
        LIMIT ?8
  ), page AS MATERIALIZED (
    SELECT seq FROM step WHERE matches ORDER BY claimed_at DESC, id DESC LIMIT ?10 OFFSET ?9
  )
  SELECT COUNT(*), COALESCE(SUM(matches), 0), MIN(claimed_at), (SELECT id FROM step ORDER BY
      claimed_at, id LIMIT 1) FROM step
  UNION ALL
  SELECT * FROM (SELECT body, NULL, NULL, NULL FROM page CROSS JOIN history USING (seq) ORDER BY
      claimed_at DESC, id DESC)`;

/**
 * A start for a walk that skips ?6 entries: at most ?6 were claimed at or after it; also their
 * number. Counts only claims later than ?5. Goes from coarse buckets to fine ones.
 */
const seek = (groups: string): string => {
  const level = (name: string, bits: number, above: string | undefined): string => {
    const from = `(?5 >> ${bits}) + 1`;
    const since = above === undefined ? from : `(SELECT MAX(${from}, bucket << 6) FROM ${above})`;
    return `
  ${name}_counts AS MATERIALIZED (
    SELECT bucket,
        ${above === undefined ? '' : `(SELECT passed FROM ${above}) + `}SUM(SUM(finished)) OVER
        (ORDER BY bucket DESC) AS newer
    FROM history_claims WHERE group_id IN (SELECT group_id FROM history_groups WHERE ${groups}) AND
        bits = ${bits}
      AND bucket >= ${since}
      ${above === undefined ? '' : `AND bucket < (SELECT (bucket + 1) << 6 FROM ${above})`}
    GROUP BY bucket
  ), ${name} AS MATERIALIZED (
    SELECT COALESCE(MAX(bucket) FILTER (WHERE newer > ?6), ?5 >> ${bits}) AS bucket,
      COALESCE(MAX(newer) FILTER (WHERE newer <= ?6),
          ${above === undefined ? '0' : `(SELECT passed FROM ${above})`}) AS passed
    FROM ${name}_counts
  )`;
  };
  return `WITH ${level('coarse', 20, undefined)}, ${level('middle', 14, 'coarse')},
      ${level('fine', 8, 'middle')}
    SELECT (bucket + 1) << 8, passed FROM fine`;
};

export const STATEMENTS = {
  'instances.page': `SELECT seq, ${INSTANCE}, definition FROM instances WHERE seq > ? ORDER BY seq
      LIMIT ?`,
  'instances.read': `SELECT seq, ${INSTANCE}, definition FROM instances WHERE id = ?`,
  'instances.birth': `INSERT INTO instances (id, revision, state, birth, definition) VALUES (?, 1,
      'idle', ?, ?)
    ON CONFLICT DO NOTHING RETURNING revision`,
  'instances.claim': `UPDATE instances SET state = 'claimed', revision = revision + 1,
    owner_namespace = ?, owner_team = ?, owner_user = ?, claimed_at = ?, idle_timeout_ms = ?,
    max_lifetime_ms = ?, mark = ?, claim_terms = ?, ends_at = ?
    WHERE id = ? AND revision = ? AND state = 'idle' RETURNING revision`,
  'instances.amend': `UPDATE instances SET idle_timeout_ms = ?, revision = revision + 1
    WHERE id = ? AND revision = ? AND state = 'claimed' RETURNING ${INSTANCE}`,
  'instances.amendEnd': `UPDATE instances SET ends_at = ?, revision = revision + 1
    WHERE id = ? AND revision = ? AND state = 'claimed' RETURNING ${INSTANCE}`,
  'instances.pause': `UPDATE instances SET paused_at = ?, ends_at = coalesce(?, ends_at),
    revision = revision + 1
    WHERE id = ? AND revision = ? AND state = 'claimed' RETURNING ${INSTANCE}`,
  'instances.bump': `UPDATE instances SET revision = revision + 1
    WHERE id = ? AND revision = ? AND state = 'idle' RETURNING ${INSTANCE}`,
  'instances.retire': `DELETE FROM instances WHERE id = ? AND revision = ? AND state = 'idle'
      RETURNING id`,
  // A record that is not claimed, or already ending, stays unchanged.
  'instances.release': `UPDATE instances SET revision = revision + (state = 'claimed'),
    end_reason = CASE state WHEN 'claimed' THEN ?2 ELSE end_reason END,
    exit_code = CASE state WHEN 'claimed' THEN ?3 ELSE exit_code END,
    state = CASE state WHEN 'claimed' THEN 'ending' ELSE state END
    WHERE id = ?1 RETURNING ${INSTANCE}`,
  'instances.forget': 'DELETE FROM instances WHERE id = ?',

  'templates.list': 'SELECT revision, body FROM templates ORDER BY name',
  'templates.get': 'SELECT revision, body FROM templates WHERE name = ?',
  'templates.create':
    `INSERT INTO templates (name, revision, body) VALUES (?, ${NEXT_REVISION}, ?) ON ` +
    'CONFLICT DO NOTHING RETURNING revision',
  'templates.update':
    `UPDATE templates SET revision = ${NEXT_REVISION}, body = ? WHERE name = ? AND revision ` +
    '= ? RETURNING revision',
  'templates.remove': 'DELETE FROM templates WHERE name = ? AND revision = ? RETURNING revision',
  'pools.list': 'SELECT revision, body FROM pools ORDER BY uid',
  'pools.get': 'SELECT revision, body FROM pools WHERE namespace = ? AND name = ?',
  'pools.create':
    'INSERT INTO pools (uid, namespace, name, revision, body) VALUES (?, ?, ?, ' +
    `${NEXT_REVISION}, ?) ON CONFLICT DO NOTHING RETURNING revision`,
  'pools.update':
    `UPDATE pools SET revision = ${NEXT_REVISION}, body = ? WHERE uid = ? AND revision = ? ` +
    'RETURNING revision',
  'pools.remove': 'DELETE FROM pools WHERE uid = ? AND revision = ? RETURNING revision',
  'envs.list': 'SELECT revision, body FROM envs ORDER BY uid',
  'envs.get': 'SELECT revision, body FROM envs WHERE namespace = ? AND name = ?',
  'envs.create':
    'INSERT INTO envs (uid, namespace, name, revision, body) VALUES (?, ?, ?, ' +
    `${NEXT_REVISION}, ?) ON CONFLICT DO NOTHING RETURNING revision`,
  'envs.update':
    `UPDATE envs SET revision = ${NEXT_REVISION}, body = ? WHERE uid = ? AND revision = ? ` +
    'RETURNING revision',
  'envs.remove': 'DELETE FROM envs WHERE uid = ? AND revision = ? RETURNING revision',
  'apiKeys.list': 'SELECT revision, body FROM api_keys ORDER BY key_id',
  'apiKeys.get':
    'SELECT revision, body FROM api_keys WHERE key_id = ? OR (namespace = ? AND short_name = ?)',
  'apiKeys.create':
    'INSERT INTO api_keys (key_id, namespace, short_name, revision, body) VALUES (?, ?, ?, ' +
    `${NEXT_REVISION}, ?) ON CONFLICT DO NOTHING RETURNING revision`,
  'apiKeys.update':
    `UPDATE api_keys SET revision = ${NEXT_REVISION}, body = ? WHERE key_id = ? AND ` +
    'revision = ? RETURNING revision',
  'apiKeys.remove': 'DELETE FROM api_keys WHERE key_id = ? AND revision = ? RETURNING revision',
  'approvals.list': 'SELECT revision, body FROM approvals ORDER BY id',
  'approvals.get': 'SELECT revision, body FROM approvals WHERE id = ?',
  'approvals.create':
    `INSERT INTO approvals (id, revision, body) VALUES (?, ${NEXT_REVISION}, ?) ON ` +
    'CONFLICT DO NOTHING RETURNING revision',
  'approvals.update':
    `UPDATE approvals SET revision = ${NEXT_REVISION}, body = ? WHERE id = ? AND revision ` +
    '= ? RETURNING revision',
  'approvals.remove': 'DELETE FROM approvals WHERE id = ? AND revision = ? RETURNING revision',
  'clusters.list': 'SELECT revision, body FROM clusters ORDER BY cluster_id',
  'clusters.get': 'SELECT revision, body FROM clusters WHERE cluster_id = ?',
  'clusters.create':
    `INSERT INTO clusters (cluster_id, revision, body) VALUES (?, ${NEXT_REVISION}, ?) ON ` +
    'CONFLICT DO NOTHING RETURNING revision',
  'clusters.update':
    `UPDATE clusters SET revision = ${NEXT_REVISION}, body = ? WHERE cluster_id = ? AND revision ` +
    '= ? RETURNING revision',
  'clusters.remove':
    'DELETE FROM clusters WHERE cluster_id = ? AND revision = ? RETURNING revision',
  'quotas.list': 'SELECT revision, body FROM user_quotas ORDER BY tenant',
  'quotas.get': 'SELECT revision, body FROM user_quotas WHERE tenant = ?',
  'quotas.create':
    `INSERT INTO user_quotas (tenant, revision, body) VALUES (?, ${NEXT_REVISION}, ?) ON ` +
    'CONFLICT DO NOTHING RETURNING revision',
  'quotas.update':
    `UPDATE user_quotas SET revision = ${NEXT_REVISION}, body = ? WHERE tenant = ? AND ` +
    'revision = ? RETURNING revision',
  'quotas.remove': 'DELETE FROM user_quotas WHERE tenant = ? AND revision = ? RETURNING revision',

  'pullSecrets.keep':
    'INSERT INTO pull_secrets (pool_uid, sealed) VALUES (?, ?) ON CONFLICT DO UPDATE SET ' +
    'sealed = excluded.sealed',
  'pullSecrets.forget': 'DELETE FROM pull_secrets WHERE pool_uid = ?',
  'pullSecrets.sweep':
    'DELETE FROM pull_secrets WHERE pool_uid NOT IN (SELECT uid FROM pools UNION ALL ' +
    'SELECT uid FROM envs)',
  'answers.page':
    'SELECT seq, key, principal, expires_at, length(CAST(coalesce(answer, place) AS BLOB)) ' +
    'FROM kept_answers WHERE seq > ? ORDER BY seq LIMIT ?',
  'answers.read': 'SELECT body_hash, answer, place FROM kept_answers WHERE seq = ?',
  'answers.keep':
    'INSERT INTO kept_answers (seq, key, principal, body_hash, expires_at, answer, place) ' +
    'VALUES (?, ?, ?, ?, ?, ?, ?)',
  'answers.forget': 'DELETE FROM kept_answers WHERE seq = ?',
  'deadLetters.keep':
    'INSERT INTO dead_letters (receiver, id, at, body) VALUES (?, ?, ?, ?) ON CONFLICT DO ' +
    'UPDATE SET at = excluded.at, body = excluded.body',
  'deadLetters.trim': `DELETE FROM dead_letters WHERE receiver = ?1 AND (at <= ?2 OR id NOT IN
    (SELECT id FROM dead_letters WHERE receiver = ?1 ORDER BY at DESC, id LIMIT ?3))`,
  'deadLetters.of':
    'SELECT body FROM dead_letters WHERE receiver = ? AND at > ? ORDER BY at DESC, id LIMIT ?',
  'deadLetters.forget': 'DELETE FROM dead_letters WHERE receiver = ? AND id = ?',

  'history.record': `INSERT INTO finished_sandboxes (id, namespace, team, user, pool_name,
      claimed_at, terminated_at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  'history.find': 'SELECT body FROM history WHERE id = ?',
  'history.countByNamespace': 'SELECT namespace, finished FROM history_namespaces',
  'events.record': `INSERT INTO sandbox_events (sandbox_id, id, body)
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE true ON CONFLICT DO
        NOTHING`,
  'events.of': 'SELECT body FROM sandbox_events WHERE sandbox_id = ? ORDER BY id',
  'poolEvents.record': `INSERT INTO pool_events (namespace, pool, id, owner, ended_at, body)
    SELECT namespace, pool, id, owner,
      CASE WHEN EXISTS (SELECT 1 FROM pools WHERE pools.namespace = told.namespace AND name = pool)
          THEN NULL ELSE at END, body
    FROM (SELECT value ->> '$[1]' AS body, value ->> '$[0]' AS id,
        value ->> '$[1]' ->> '$.owner.namespace' AS namespace, value ->> '$[1]' ->> '$.poolName' AS
            pool,
        value ->> '$[1]' ->> '$.owner.team' || '/' || (value ->> '$[1]' ->> '$.owner.user') AS
            owner,
        value ->> '$[1]' ->> '$.at' AS at
      FROM json_each(?)) AS told WHERE true ON CONFLICT DO NOTHING`,
  'poolEvents.of': 'SELECT body FROM pool_events WHERE namespace = ? AND pool = ? ORDER BY id',
  'poolEvents.forget': `DELETE FROM pool_events WHERE (namespace, pool, id) IN (
      SELECT namespace, pool, id FROM pool_events WHERE ended_at < ? LIMIT ?) RETURNING id`,
  'decisions.record': `INSERT INTO scaling_decisions (env_uid, group_name, id, body) VALUES (?, ?,
      ?, ?)
    ON CONFLICT DO UPDATE SET body = excluded.body`,
  'decisions.of':
    'SELECT body FROM scaling_decisions WHERE env_uid = ? AND group_name = ? ORDER BY id DESC',
  'history.totalOfOwner': totalSince(OWNER_GROUPS),
  'history.totalOfAny': totalSince(ANY_GROUPS),
  'history.seekOfOwner': seek(OWNER_GROUPS),
  'history.seekOfAny': seek(ANY_GROUPS),
  'history.walkOfOwner': walk(`owner = ?1 || '/' || ?2 || '/' || ?3 AND`, OWNER_GROUPS),
  'history.walkOfAny': walk('', ANY_GROUPS),
  'history.forget': `DELETE FROM history WHERE seq IN (
    SELECT seq FROM history WHERE terminated_at < ? ORDER BY terminated_at LIMIT ?) RETURNING seq`,
  'history.trim': `DELETE FROM history WHERE seq IN (
    SELECT seq FROM history WHERE owner = (
      SELECT owner FROM (SELECT owner, bytes, SUM(bytes) OVER () AS total FROM history_bytes)
      WHERE bytes > ?1 OR total > ?2 ORDER BY bytes DESC LIMIT 1)
    ORDER BY terminated_at LIMIT ?3) RETURNING seq`,
} as const satisfies Readonly<Record<string, string>>;

export type StatementName = keyof typeof STATEMENTS;

/** Defines the numbers of client and worker. */
export const STATEMENT_NAMES: readonly string[] = Object.keys(STATEMENTS);

/**
 * A power cut may undo these writes, but no crash of the process. Their commits don't wait for the
 * disk; the next synced one saves them too. A caller repeats the request for a lost approval.
 */
export const UNSYNCED: ReadonlySet<string> = new Set<StatementName>(['approvals.create']);
