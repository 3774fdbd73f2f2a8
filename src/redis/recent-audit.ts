import {
  type AuditLine,
  type RecentAudit,
  type RecentAuditLine,
  RECENT_AUDIT_LINES,
} from '../contracts/audit.ts';
import type { Log } from '../contracts/log.ts';
import type { Keys } from './keys.ts';
import type { RedisLink, RedisPlace } from './redis-link.ts';

/** Below every id of a stream. */
const FIRST_ID = '0-0';

/** Failed writes are not repeated: lines have numbers, and the files have all of them. */
export class RedisRecentAudit implements RecentAudit {
  readonly #link: RedisLink;
  readonly #keys: Keys;
  readonly #log: Log;

  constructor({ link, keys, log }: RedisPlace & { readonly log: Log }) {
    this.#link = link;
    this.#keys = keys;
    this.#log = log;
  }

  add(lines: readonly AuditLine[]): void {
    if (lines.length === 0) return;
    this.#link
      .run('add_audit', [this.#keys.audit], [RECENT_AUDIT_LINES, ...lines])
      .catch((error: unknown) => {
        this.#log.debug({ error, lines: lines.length }, 'audit-not-shared');
      });
  }

  restore(): void {
    // Redis has the lines of all replicas.
  }

  async before(cursor: string | undefined, most: number): Promise<readonly RecentAuditLine[]> {
    if (cursor === FIRST_ID) return []; // Redis refuses this range
    const entries = await this.#link.call((client) =>
      client.xrevrange(
        this.#keys.audit,
        cursor === undefined ? '+' : `(${cursor}`,
        '-',
        'COUNT',
        most,
      ),
    );
    return entries.map(([id, fields]) => ({ cursor: id, line: fields[1] ?? '' }));
  }
}
