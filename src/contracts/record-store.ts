import type { ApiKeyRecord } from '../model/api-key.ts';
import type { Revision } from '../model/identifiers.ts';
import type { PoolRecord } from '../model/pool.ts';
import type { TemplateRecord } from '../model/template.ts';

/** The name is taken. Nothing was written. */
export class RecordExists extends Error {
  override readonly name = 'RecordExists';
}

/**
 * The durable records of one kind. Every write is durable when it resolves and moves the revision. `list` is for
 * start-up: afterwards the mirror answers. `update` and `remove` are conditional on the revision seen and reject with
 * RecordConflict (see sandbox-driver.ts) when it moved, with OutcomeUnknown when they may have landed.
 */
export interface Records<T extends { readonly revision: Revision }> {
  list(): Promise<readonly T[]>;
  /** Rejects with RecordExists where the key is taken. */
  create(record: Omit<T, 'revision'>): Promise<T>;
  update(record: T): Promise<T>;
  remove(record: T): Promise<void>;
}

/** Keys: a template's name; a pool's namespace and name, and its uid; an API key's keyId, and its namespace and shortName. */
export interface RecordStore {
  readonly templates: Records<TemplateRecord>;
  readonly pools: Records<PoolRecord>;
  readonly apiKeys: Records<ApiKeyRecord>;
}
