import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { Records } from '../../contracts/record-store.ts';
import { OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';
import {
  isOpen,
  type ApprovalRecord,
  type ApprovalStatus,
} from '../../model/approvals/approval.ts';
import { isNewer } from '../../model/mirror/revision-order.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import { type MirrorFollower, RecordMirror } from '../runtime/record-mirror.ts';

export interface ApprovalMirrorDeps {
  readonly approvals: Records<ApprovalRecord>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface SessionUse {
  readonly keyId: string;
  readonly sessionId: string;
  readonly operation: string;
  readonly route?: string;
}

/** Remembered against late reports. */
const MOST_REMOVED = 10_000;
const MOST_ATTEMPTS = 8;
/** Longest delay of a mirror that is not stale. */
const LATE_MS = 60_000;

/** In ms since the epoch, from a UUIDv7. */
const madeAt = (id: string): number => Number.parseInt(id.replace('-', '').slice(0, 12), 16);

const approvalKey = ({ id, principal: { namespace } }: ApprovalRecord): string =>
  `${namespace}/${id}`;

/**
 * Holds no request content. `pending`, `bound` and `forSession` may return approvals that the clock
 * has already expired.
 */
export class ApprovalMirror extends RecordMirror<ApprovalRecord> {
  readonly #log: Log;
  readonly #approvals: Records<ApprovalRecord>;
  readonly #clock: Clock;
  /** Last open, denied or used approval of each binding. */
  readonly #byBinding = new Map<string, ApprovalRecord>();
  readonly #bySession = new Map<string, ApprovalRecord>();
  readonly #pending = new Map<string, Map<string, ApprovalRecord>>();
  /** By tenant and status; each key may omit one or both. */
  readonly #lists = new Map<string, OrderedIndex>();

  constructor({ approvals, clock, log }: ApprovalMirrorDeps) {
    super({
      records: { ...boundTo(approvals), watch: (report) => approvals.watch(trimmed(report)) },
      clock,
      keyOf: ({ id }) => id,
      storeKeyOf: approvalKey,
      mostRemoved: MOST_REMOVED,
    });
    this.#log = log;
    this.#approvals = approvals;
    this.#clock = clock;
    super.follow(({ kind, record }, before) => {
      if (before) this.#drop(before);
      if (kind === 'put') this.#keep(record);
    });
  }

  /** An error of one follower is logged, and the others continue. */
  override follow(follower: MirrorFollower<ApprovalRecord>): void {
    super.follow((change, before) => {
      try {
        follower(change, before);
      } catch (error) {
        this.#log.error(
          { entity: 'approval', id: change.record.id, error },
          'approval-change-not-applied',
        );
      }
    });
  }

  async whole(id: string): Promise<ApprovalRecord | undefined> {
    const known = await this.#known(id);
    return known && (await this.#approvals.get(approvalKey(known)));
  }

  /**
   * A conditional write, retried with the new record after a conflict. `change` returns undefined
   * for no change, or throws. Resolves with the final record, if any.
   */
  async amend(
    id: string,
    change: (record: ApprovalRecord) => ApprovalRecord | undefined,
    permitted?: () => boolean,
  ): Promise<ApprovalRecord | undefined> {
    for (let attempt = 1; ; attempt += 1) {
      const record = await this.whole(id);
      const next = record && change(record);
      if (!next) return record;
      try {
        return await this.#approvals.update(next, permitted);
      } catch (error) {
        if (!(error instanceof RecordConflict) || attempt === MOST_ATTEMPTS) throw error;
      }
    }
  }

  bound(binding: string): ApprovalRecord | undefined {
    return this.#byBinding.get(binding);
  }

  forSession(use: SessionUse): ApprovalRecord | undefined {
    return this.#bySession.get(sessionKey(use));
  }

  pending(user: Tenant): readonly ApprovalRecord[] {
    return [...(this.#pending.get(tenantKey(user))?.values() ?? [])].toSorted((a, b) =>
      isNewer(a.revision, b.revision) ? 1 : -1,
    );
  }

  page(
    of: { readonly user: Tenant | undefined; readonly status: ApprovalStatus | undefined },
    { limit, offset }: { readonly limit: number; readonly offset: number },
  ): { readonly items: readonly ApprovalRecord[]; readonly total: number } {
    const list = this.#lists.get(listKey(of.user && tenantKey(of.user), of.status));
    return {
      items: (list?.newest(offset, limit) ?? []).flatMap((id) => this.get(id) ?? []),
      total: list?.size ?? 0,
    };
  }

  count(status: ApprovalStatus): number {
    return this.#lists.get(listKey(undefined, status))?.size ?? 0;
  }

  oldest(status: ApprovalStatus, most: number): readonly ApprovalRecord[] {
    const ids = this.#lists.get(listKey(undefined, status))?.ids(most) ?? [];
    return ids.flatMap((id) => this.get(id) ?? []);
  }

  /** Another replica may have just created a recent id. */
  async #known(id: string): Promise<ApprovalRecord | undefined> {
    if (!this.get(id) && madeAt(id) > this.#clock.now() - LATE_MS) await this.#approvals.caughtUp();
    return this.get(id);
  }

  #keep(record: ApprovalRecord): void {
    for (const key of listKeys(record)) {
      const list = this.#lists.get(key) ?? new OrderedIndex();
      this.#lists.set(key, list);
      list.add(entryOf(record));
    }
    if (isOpen(record) || record.status === 'denied' || record.use)
      this.#byBinding.set(record.binding, record);
    const session = sessionKeyOf(record);
    if (session !== undefined) this.#bySession.set(session, record);
    if (record.status !== 'pending') return;
    const user = tenantKey(record.principal);
    const pending = this.#pending.get(user) ?? new Map<string, ApprovalRecord>();
    this.#pending.set(user, pending);
    pending.set(record.id, record);
  }

  #drop(record: ApprovalRecord): void {
    for (const key of listKeys(record)) {
      const list = this.#lists.get(key);
      list?.remove(entryOf(record));
      if (list?.size === 0) this.#lists.delete(key);
    }
    if (this.#byBinding.get(record.binding)?.id === record.id)
      this.#byBinding.delete(record.binding);
    const session = sessionKeyOf(record);
    if (session !== undefined && this.#bySession.get(session)?.id === record.id)
      this.#bySession.delete(session);
    const user = tenantKey(record.principal);
    const pending = this.#pending.get(user);
    pending?.delete(record.id);
    if (pending?.size === 0) this.#pending.delete(user);
  }
}

const boundTo = (approvals: Records<ApprovalRecord>) => ({
  get: (key: string) => approvals.get(key),
  update: (record: ApprovalRecord, permitted?: () => boolean) =>
    approvals.update(record, permitted),
  remove: (record: ApprovalRecord) => approvals.remove(record),
  caughtUp: () => approvals.caughtUp(),
});

const trimmed =
  (report: Parameters<Records<ApprovalRecord>['watch']>[0]): typeof report =>
  ({ kind, record: { content: _content, ...record } }) => {
    report({ kind, record });
  };

const entryOf = ({ createdAt, id }: ApprovalRecord): OrderedEntry => ({ at: createdAt, id });

const listKey = (user: string | undefined, status: ApprovalStatus | undefined): string =>
  `${user ?? ''} ${status ?? ''}`;

const listKeys = ({ principal, status }: ApprovalRecord): readonly string[] => {
  const user = tenantKey(principal);
  return [
    listKey(undefined, undefined),
    listKey(undefined, status),
    listKey(user, undefined),
    listKey(user, status),
  ];
};

const sessionKey = ({ keyId, sessionId, operation, route = '' }: SessionUse): string =>
  `${keyId} ${operation} ${sessionId} ${route}`;

const sessionKeyOf = ({
  status,
  scope,
  principal: { keyId },
  sessionId,
  operation,
  route,
}: ApprovalRecord): string | undefined =>
  status === 'approved' && scope === 'session' && sessionId !== undefined
    ? sessionKey({ keyId, sessionId, operation, route })
    : undefined;
