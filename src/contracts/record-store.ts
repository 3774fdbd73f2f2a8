import type { ApiKeyRecord } from '../model/api-key.ts';
import type { ApprovalRecord } from '../model/approvals/approval.ts';
import type { EnvRecord } from '../model/envs/env.ts';
import type { ClusterRecord } from '../model/fleet/cluster.ts';
import type { Revision } from '../model/identifiers.ts';
import type { PoolRecord } from '../model/pools/pool.ts';
import type { UserQuota } from '../model/pools/quota.ts';
import type { TemplateRecord } from '../model/templates/template.ts';

/** Nothing was written. */
export class RecordExists extends Error {
  override readonly name = 'RecordExists';
}

export interface RecordChange<T> {
  readonly kind: 'put' | 'gone';
  readonly record: T;
}

/**
 * Every write is durable when it resolves, and moves the revision. `update` and `remove` are
 * conditional on the seen revision: they reject with RecordConflict, or with OutcomeUnknown if they
 * may have landed. The store calls `permitted` right before it sends a write; on false it rejects
 * with LeaseLost. A permitted write lands within WRITE_MS, or never.
 */
export interface Records<T extends { readonly revision: Revision }> {
  list(): Promise<readonly T[]>;
  /**
   * Uncached. Takes the first key that RecordStore names. Reports a change to watchers before it
   * resolves.
   */
  get(key: string): Promise<T | undefined>;
  /** Rejects with RecordExists if the key is taken. */
  create(record: Omit<T, 'revision'>, permitted?: () => boolean): Promise<T>;
  update(record: T, permitted?: () => boolean): Promise<T>;
  remove(record: T): Promise<void>;
  /**
   * Reports every record once, then each change by anybody, including this process, which is
   * reported before its write resolves. Resolves when the first pass is complete. Per record, never
   * reports an older state after a newer one or after its end, but may repeat a state or join two
   * changes. The store logs what `report` throws.
   */
  watch(report: (change: RecordChange<T>) => void): Promise<void>;
  /**
   * Resolves once all writes from before this call have been reported. Rejects if that takes too
   * long.
   */
  caughtUp(): Promise<void>;
}

/**
 * Keys: a template's name; a pool's and an env's `namespace/name`, and its uid; an API key's keyId,
 * and its `namespace/shortName`, of which `get` takes either. An approval's `namespace/id`; a
 * user's tenantKey; a worker cluster's id. A power failure may lose an approval that was created
 * and not changed since.
 */
export interface RecordStore {
  readonly templates: Records<TemplateRecord>;
  readonly pools: Records<PoolRecord>;
  readonly envs: Records<EnvRecord>;
  readonly apiKeys: Records<ApiKeyRecord>;
  readonly approvals: Records<ApprovalRecord>;
  readonly quotas: Records<UserQuota>;
  /** A worker keeps a record of itself here if its admin cut off its managers. */
  readonly clusters: Records<ClusterRecord>;
}

export type PublishedKind = 'pool' | 'env';

export interface PublishedCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** For readers of the record's object in the Kubernetes cluster rather than of the API. */
export interface PublishedStatus {
  readonly namespace: string;
  readonly name: string;
  readonly fields: Readonly<Record<string, string | number>>;
  readonly conditions: readonly PublishedCondition[];
  /** The owner manually requested a size that is not granted yet. */
  readonly undecided: boolean;
  /** The status may change without a call of `changed`. */
  readonly pending: boolean;
}

/** Undefined if this replica does not lead the record, or if it does not exist. */
export type StatusSource = (kind: PublishedKind, uid: string) => PublishedStatus | undefined;

/**
 * In the background; reports no result. After a fault it retries until the published status matches
 * the source.
 */
export interface StatusPublisher {
  /** Called once, before `changed`. */
  publish(source: StatusSource): void;
  /** The status may have changed. Called often, returns at once. */
  changed(kind: PublishedKind, uid: string): void;
}
