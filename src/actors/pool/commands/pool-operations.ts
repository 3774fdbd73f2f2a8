import type { EventRecord } from '../../../model/event.ts';
import type { IfMatch } from '../../../model/if-match.ts';
import type { PoolPhase, UpdateStrategy } from '../../../model/pools/pool.ts';
import type { PoolSource, RegistryCredentials } from '../../../model/pools/pool-source.ts';
import type { RequestFingerprint } from '../../../model/request-fingerprint.ts';
import type { Access, Caller } from '../../../model/tenant.ts';
import type { QuotaChange } from './quota-limits.ts';
import type { Page, PageRequest, PoolSyncView, PoolView, QuotaView } from '../../views.ts';

export interface PoolOperations {
  readonly createPool: (caller: Caller, request: CreatePoolRequest) => Promise<PoolView>;
  /**
   * Undefined if no earlier request with this fingerprint created one. Refuses with
   * IDEMPOTENCY_KEY_REUSED if the body differs.
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
  /** Keeps its replicas. */
  readonly syncPool: (caller: Caller, name: string) => Promise<PoolView>;
  /** Writes nothing. */
  readonly previewPoolSync: (caller: Caller, name: string) => Promise<PoolSyncView>;
  readonly deletePool: (
    caller: Caller,
    name: string,
    options: { readonly force: boolean },
  ) => Promise<PoolView>;
  /** Oldest first; for a deleted pool, while they are kept. */
  readonly poolEvents: (caller: Caller, name: string) => Promise<readonly EventRecord[]>;
  /** Refuses with UNAVAILABLE if the usage can't be read. The next two do so too. */
  readonly getQuotas: (caller: Caller) => Promise<QuotaView>;
  readonly getQuotasOf: (caller: Caller, user: TeamUser) => Promise<QuotaView>;
  /** Keeps omitted limits. Durable when this resolves. */
  readonly setQuotasOf: (caller: Caller, user: TeamUser, change: QuotaChange) => Promise<QuotaView>;
}

export interface TeamUser {
  readonly team: string;
  readonly user: string;
}

export interface PoolSpec {
  readonly source?: PoolSource;
  /** Secrets. Replaces all earlier ones. */
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
  /** Paths of fields, such as `cpu` or `overrides.image`, whose defaults apply again. */
  readonly unset?: readonly string[];
  readonly ifMatch?: IfMatch;
}
