/**
 * Every statement that the database runs, by name. Each is a single statement, so that one that fails undoes itself and
 * nothing else of its batch. A write answers a row (RETURNING) where it took effect, and none where its condition failed.
 */

const INSTANCE = `id, revision, state, owner_namespace, owner_team, owner_user, claimed_at, idle_timeout_ms, max_lifetime_ms,
  end_reason, exit_code, birth`;
const NEXT_REVISION = '(SELECT last + 1 FROM record_revision)';

/** The groups of a filter. An owner's are found by index; the others by a pass over the groups, one row per owner and pool. */
const OWNER_GROUPS = 'namespace = ?1 AND team = ?2 AND user = ?3 AND (?4 IS NULL OR pool_name = ?4)';
const ANY_GROUPS = '(?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR team = ?2) AND (?3 IS NULL OR user = ?3) AND (?4 IS NULL OR pool_name = ?4)';

const NEWEST_FIRST = 'ORDER BY claimed_at DESC, id DESC';
const TOTAL_OF = (groups: string): string => `SELECT COALESCE(SUM(finished), 0) FROM history_groups WHERE ${groups}`;

/** One row with the exact total, then the page's bodies; one statement, so that they agree. */
const totalAndPage = (total: string, page: string): string =>
  `SELECT (${total}) AS body UNION ALL SELECT body FROM (${page})`;

/** The newest of each group by its index, then the newest of those. ?5: offset + limit, ?6: limit, ?7: offset. */
const pageOfGroups = (groups: string): string => totalAndPage(TOTAL_OF(groups), `
  SELECT body FROM history_groups g JOIN history h ON h.seq IN (
    SELECT seq FROM history WHERE group_id = g.group_id ${NEWEST_FIRST} LIMIT ?5
  ) WHERE ${groups} ${NEWEST_FIRST} LIMIT ?6 OFFSET ?7`);

/** Those of the groups that ended since ?5, sorted. ?6: limit, ?7: offset. */
const pageSince = (groups: string): string => {
  const matching = `FROM history_groups g JOIN history h ON h.group_id = g.group_id AND h.terminated_at >= ?5 WHERE ${groups}`;
  return totalAndPage(`SELECT COUNT(*) ${matching}`, `SELECT body ${matching} ${NEWEST_FIRST} LIMIT ?6 OFFSET ?7`);
};

export const STATEMENTS = {
  'instances.page': `SELECT seq, ${INSTANCE}, definition FROM instances WHERE seq > ? ORDER BY seq LIMIT ?`,
  'instances.read': `SELECT seq, ${INSTANCE}, definition FROM instances WHERE id = ?`,
  'instances.birth': `INSERT INTO instances (id, revision, state, birth, definition) VALUES (?, 1, 'idle', ?, ?)
    ON CONFLICT DO NOTHING RETURNING ${INSTANCE}`,
  'instances.claim': `UPDATE instances SET state = 'claimed', revision = revision + 1, owner_namespace = ?, owner_team = ?,
    owner_user = ?, claimed_at = ?, idle_timeout_ms = ?, max_lifetime_ms = ?
    WHERE id = ? AND revision = ? AND state = 'idle' RETURNING ${INSTANCE}`,
  'instances.amend': `UPDATE instances SET idle_timeout_ms = ?, revision = revision + 1
    WHERE id = ? AND revision = ? AND state = 'claimed' RETURNING ${INSTANCE}`,
  'instances.retire': `DELETE FROM instances WHERE id = ? AND revision = ? AND state = 'idle' RETURNING id`,
  // One that already ends, or is not claimed, is answered as it stands.
  'instances.release': `UPDATE instances SET revision = revision + (state = 'claimed'),
    end_reason = CASE state WHEN 'claimed' THEN ?2 ELSE end_reason END,
    exit_code = CASE state WHEN 'claimed' THEN ?3 ELSE exit_code END,
    state = CASE state WHEN 'claimed' THEN 'ending' ELSE state END
    WHERE id = ?1 RETURNING ${INSTANCE}`,
  'instances.forget': 'DELETE FROM instances WHERE id = ?',

  'templates.list': 'SELECT revision, body FROM templates ORDER BY name',
  'templates.create': `INSERT INTO templates (name, revision, body) VALUES (?, ${NEXT_REVISION}, ?) ON CONFLICT DO NOTHING RETURNING revision`,
  'templates.update': `UPDATE templates SET revision = ${NEXT_REVISION}, body = ? WHERE name = ? AND revision = ? RETURNING revision`,
  'templates.remove': 'DELETE FROM templates WHERE name = ? AND revision = ? RETURNING revision',
  'pools.list': 'SELECT revision, body FROM pools ORDER BY uid',
  'pools.create': `INSERT INTO pools (uid, namespace, name, revision, body) VALUES (?, ?, ?, ${NEXT_REVISION}, ?) ON CONFLICT DO NOTHING RETURNING revision`,
  'pools.update': `UPDATE pools SET revision = ${NEXT_REVISION}, body = ? WHERE uid = ? AND revision = ? RETURNING revision`,
  'pools.remove': 'DELETE FROM pools WHERE uid = ? AND revision = ? RETURNING revision',
  'apiKeys.list': 'SELECT revision, body FROM api_keys ORDER BY key_id',
  'apiKeys.create': `INSERT INTO api_keys (key_id, namespace, short_name, revision, body) VALUES (?, ?, ?, ${NEXT_REVISION}, ?) ON CONFLICT DO NOTHING RETURNING revision`,
  'apiKeys.update': `UPDATE api_keys SET revision = ${NEXT_REVISION}, body = ? WHERE key_id = ? AND revision = ? RETURNING revision`,
  'apiKeys.remove': 'DELETE FROM api_keys WHERE key_id = ? AND revision = ? RETURNING revision',

  'history.record': `INSERT INTO finished_sandboxes (id, namespace, team, user, pool_name, claimed_at, terminated_at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  'history.pageOfAll': totalAndPage(TOTAL_OF('TRUE'), `SELECT body FROM history ${NEWEST_FIRST} LIMIT ? OFFSET ?`),
  'history.pageOfOwner': pageOfGroups(OWNER_GROUPS),
  'history.pageOfAny': pageOfGroups(ANY_GROUPS),
  'history.pageOfOwnerSince': pageSince(OWNER_GROUPS),
  'history.pageOfAnySince': pageSince(ANY_GROUPS),
  'history.forget': `DELETE FROM history WHERE seq IN (
    SELECT seq FROM history WHERE terminated_at < ? ORDER BY terminated_at LIMIT ?) RETURNING seq`,
} as const satisfies Readonly<Record<string, string>>;

export type StatementName = keyof typeof STATEMENTS;

/** In the order that numbers them between the client and its worker. */
export const STATEMENT_NAMES: readonly string[] = Object.keys(STATEMENTS);
