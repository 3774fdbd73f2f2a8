import type { EventRecord } from '../../../model/event.ts';
import type { IfMatch } from '../../../model/if-match.ts';
import type { PoolPhase, UpdateStrategy } from '../../../model/pools/pool.ts';
import type { PoolSource, RegistryCredentials } from '../../../model/pools/pool-source.ts';
import type { RequestFingerprint } from '../../../model/request-fingerprint.ts';
import type { Access, Caller } from '../../../model/tenant.ts';
import type { QuotaChange } from './quota-limits.ts';
import type { Page, PageRequest, PoolSyncView, PoolView, QuotaView } from '../../views.ts';

/** The use cases of pools, and quotas of those who have them. */
export interface PoolOperations {
  readonly createPool: (caller: Caller, request: CreatePoolRequest) => Promise<PoolView>;
  /**
   * The caller's pool of that name, where an earlier request of this mark made it. Refuses with
   * IDEMPOTENCY_KEY_REUSED where it had another body.
   */
  readonly findPoolByKey: (
    caller: Caller,
    name: string,
    mark: RequestFingerprint,
  ) => Promise<PoolView | undefined>;
  readonly getPool: (caller: Caller, name: string) => Promise<PoolView>;
  readonly listPools: (
    caller: Caller,
    filter: { readonly all: boolean; readonly phase?: PoolPhase },
    page: PageRequest,
  ) => Promise<Page<PoolView>>;
  readonly updatePool: (caller: Caller, name: string, change: PoolChange) => Promise<PoolView>;
  /** Renders the pool anew from its template and its owner's wishes; replicas stay. */
  readonly syncPool: (caller: Caller, name: string) => Promise<PoolView>;
  /** Shows what `syncPool` would apply. Writes nothing. */
  readonly previewPoolSync: (caller: Caller, name: string) => Promise<PoolSyncView>;
  readonly deletePool: (
    caller: Caller,
    name: string,
    options: { readonly force: boolean },
  ) => Promise<PoolView>;
  /** The last 50, the oldest first; of a deleted pool for as long as they are kept. */
  readonly poolEvents: (caller: Caller, name: string) => Promise<readonly EventRecord[]>;
  /** Refuses with UNAVAILABLE where it is not known what is used; so do the next two. */
  readonly getQuotas: (caller: Caller) => Promise<QuotaView>;
  /** For `/admin`: of any user. */
  readonly getQuotasOf: (caller: Caller, user: TeamUser) => Promise<QuotaView>;
  /**
   * For `/admin`: changes a user's limits; what is not named stays as it is. Durable when it
   * resolves.
   */
  readonly setQuotasOf: (caller: Caller, user: TeamUser, change: QuotaChange) => Promise<QuotaView>;
}

export interface TeamUser {
  readonly team: string;
  readonly user: string;
}

/** Describes what a pool's owner may say of it. */
export interface PoolSpec {
  readonly source?: PoolSource;
  /** Secrets. Replaces those that were given before. */
  readonly registries?: readonly RegistryCredentials[];
  readonly replicas?: number;
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  readonly access?: Access;
  readonly updateStrategy?: Partial<UpdateStrategy>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface CreatePoolRequest extends PoolSpec {
  readonly name: string;
  readonly source: PoolSource;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly mark?: RequestFingerprint;
}

export interface PoolChange extends PoolSpec {
  /**
   * Paths of fields that are set no more, such as `cpu` or `overrides.image`: what counts below
   * them counts again.
   */
  readonly unset?: readonly string[];
  readonly ifMatch?: IfMatch;
}
