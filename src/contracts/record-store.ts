import type { ApiKeyRecord } from '../model/api-key.ts';
import type { ApprovalRecord } from '../model/approvals/approval.ts';
import type { EnvRecord } from '../model/envs/env.ts';
import type { ClusterRecord } from '../model/fleet/cluster.ts';
import type { Revision } from '../model/identifiers.ts';
import type { PoolRecord } from '../model/pools/pool.ts';
import type { UserQuota } from '../model/pools/quota.ts';
import type { TemplateRecord } from '../model/templates/template.ts';

/** The name is taken. Nothing was written. */
export class RecordExists extends Error {
  override readonly name = 'RecordExists';
}

/**
 * `put`: made or changed; the record as it stands. `gone`: removed; the record as it was last seen.
 */
export interface RecordChange<T> {
  readonly kind: 'put' | 'gone';
  readonly record: T;
}

/**
 * The durable records of one kind. Every write is durable when it resolves and moves the revision.
 * `update` and `remove` are conditional on the revision seen and reject with RecordConflict (see
 * sandbox-driver.ts) when it moved, with OutcomeUnknown when they may have landed. `permitted` is
 * asked right before the write is sent: where it answers false, nothing is written, and the call
 * rejects with LeaseLost; one that it permits lands within WRITE_MS, or never.
 */
export interface Records<T extends { readonly revision: Revision }> {
  list(): Promise<readonly T[]>;
  /**
   * The record as it stands in the store, uncached; undefined where there is none. By the first key
   * that RecordStore names. What it finds is reported to those who watch before it resolves, where
   * it is news to them.
   */
  get(key: string): Promise<T | undefined>;
  /** Rejects with RecordExists where the key is taken. */
  create(record: Omit<T, 'revision'>, permitted?: () => boolean): Promise<T>;
  update(record: T, permitted?: () => boolean): Promise<T>;
  remove(record: T): Promise<void>;
  /**
   * Reports every record once, then each change that anybody makes, one's own too, until the store
   * is closed; resolves when the first pass is complete. In order of each record: never an older
   * state after a newer one, nor any after its end, but perhaps the same one twice. What changed
   * twice in a short while may be reported once. One's own change is reported before the call that
   * made it resolves: so who follows has nothing to learn from answers. What `report` throws is the
   * store's to log.
   */
  watch(report: (change: RecordChange<T>) => void): Promise<void>;
  /**
   * Resolves once everything that was written before this call has been reported. Rejects where
   * that takes too long.
   */
  caughtUp(): Promise<void>;
}

/**
 * Keys: a template's name; a pool's and an env's `namespace/name`, and its uid; an API key's keyId,
 * and its `namespace/shortName`, of which `get` takes either; an
 * approval's `namespace/id`; a user's tenantKey; a worker cluster's id. An approval that was
 * created and not changed since may be lost with the machine's power: who asks for it asks anew.
 */
export interface RecordStore {
  readonly templates: Records<TemplateRecord>;
  readonly pools: Records<PoolRecord>;
  readonly envs: Records<EnvRecord>;
  readonly apiKeys: Records<ApiKeyRecord>;
  readonly approvals: Records<ApprovalRecord>;
  readonly quotas: Records<UserQuota>;
  /**
   * The worker clusters of a manager. A worker keeps one of itself, where its admin has cut its
   * managers off.
   */
  readonly clusters: Records<ClusterRecord>;
}

/** The kinds of records whose status is published. */
export type PublishedKind = 'pool' | 'env';

export interface PublishedCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  /** A word in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** How a record stands, for those who read its object in the cluster and not the API. */
export interface PublishedStatus {
  readonly namespace: string;
  readonly name: string;
  readonly fields: Readonly<Record<string, string | number>>;
  readonly conditions: readonly PublishedCondition[];
  /** Its owner asked for a size by hand that is not granted yet. */
  readonly undecided: boolean;
  /** It may change without a call of `changed`. */
  readonly pending: boolean;
}

/** Says how a record stands; undefined if this replica does not lead it, or there is none. */
export type StatusSource = (kind: PublishedKind, uid: string) => PublishedStatus | undefined;

/**
 * Publishes statuses in the background. Nobody waits for it, and it reports nothing: after a fault
 * it tries again until what is published is what the source says.
 */
export interface StatusPublisher {
  /** From where statuses come; once, before `changed`. */
  publish(source: StatusSource): void;
  /** The status is perhaps not what it was. Called often, returns at once. */
  changed(kind: PublishedKind, uid: string): void;
}
