import type { ApiKeyRecord } from '../model/api-key.ts';
import type { EnvRecord } from '../model/env.ts';
import type { Revision } from '../model/identifiers.ts';
import type { PoolRecord } from '../model/pool.ts';
import type { UserQuota } from '../model/quota.ts';
import type { TemplateRecord } from '../model/template.ts';

/** The name is taken. Nothing was written. */
export class RecordExists extends Error {
  override readonly name = 'RecordExists';
}

/** `put`: made or changed; the record as it stands. `gone`: removed; the record as it was last seen. */
export interface RecordChange<T> {
  readonly kind: 'put' | 'gone';
  readonly record: T;
}

/**
 * The durable records of one kind. Every write is durable when it resolves and moves the revision. `update` and `remove`
 * are conditional on the revision seen and reject with RecordConflict (see sandbox-driver.ts) when it moved, with
 * OutcomeUnknown when they may have landed.
 */
export interface Records<T extends { readonly revision: Revision }> {
  list(): Promise<readonly T[]>;
  /** The record as it stands in the store, uncached; undefined where there is none. By the first key that RecordStore names. */
  get(key: string): Promise<T | undefined>;
  /** Rejects with RecordExists where the key is taken. */
  create(record: Omit<T, 'revision'>): Promise<T>;
  update(record: T): Promise<T>;
  remove(record: T): Promise<void>;
  /**
   * Reports every record once, then each change that anybody makes, one's own too, until the store is closed; resolves when
   * the first pass is complete. In order of each record: never an older state after a newer one, but perhaps the same one
   * twice. What changed twice in a short while may be reported once. One's own change may come before or after the call that
   * made it resolves. What `report` throws is the store's to log.
   */
  watch(report: (change: RecordChange<T>) => void): Promise<void>;
}

/** Keys: a template's name; a pool's and an env's `namespace/name`, and its uid; an API key's keyId, and its `namespace/shortName`, of which `get` takes either; a user's tenantKey. */
export interface RecordStore {
  readonly templates: Records<TemplateRecord>;
  readonly pools: Records<PoolRecord>;
  readonly envs: Records<EnvRecord>;
  readonly apiKeys: Records<ApiKeyRecord>;
  readonly quotas: Records<UserQuota>;
}
