import type { LinkView } from '../contracts/fleet/cluster-links.ts';
import type { EnvCondition } from '../model/envs/env-condition.ts';
import type { EnvMember, EnvRecord, MemberConfig, MemberState } from '../model/envs/env.ts';
import type { TextPairs } from '../model/claim-terms.ts';
import type { InstanceId, Revision } from '../model/identifiers.ts';
import type { PoolCondition } from '../model/pools/pool-condition.ts';
import type { PoolCounts, PoolPhase, PoolRecord } from '../model/pools/pool.ts';
import type { QuotaAmounts } from '../model/pools/quota.ts';
import type { EndReason, SandboxStatus } from '../model/sandbox.ts';
import type {
  InstanceDefinition,
  TemplateRecord,
  TemplateSpec,
} from '../model/templates/template.ts';
import type { Tenant } from '../model/tenant.ts';

/** Times are in ms since the epoch. */
export interface SandboxView {
  readonly id: InstanceId;
  /** `finished` after its end. */
  readonly revision: Revision;
  readonly poolName: string;
  /** The pool's owner for an unclaimed instance. */
  readonly owner: Tenant;
  readonly status: SandboxStatus;
  readonly claimedAt: number | undefined;
  readonly startedAt: number | undefined;
  readonly terminatedAt: number | undefined;
  readonly recycledAt: number | undefined;
  readonly durationSeconds: number | undefined;
  readonly cpu: string;
  readonly memory: string;
  readonly containerImages: Readonly<Record<string, string>>;
  readonly endReason: EndReason | undefined;
  readonly idleTimeoutMs: number;
  /** By idle timeout; undefined without one. */
  readonly idleExpiresAt: number | undefined;
  /** Regardless of activity; undefined if never. */
  readonly endsAt: number | undefined;
  readonly metadata?: TextPairs;
  readonly paused?: true;
  /** Pauses at `endsAt` instead of ending. */
  readonly autoPause?: true;
  /** Resumes on a call that needs it running. */
  readonly autoResume?: true;
}

/** `direct`: shows its real address on this machine, not a URL of the daemon. */
export interface EndpointView {
  readonly port: number;
  readonly scheme: 'http' | 'https';
  readonly direct: boolean;
}

export interface SandboxDetailView extends SandboxView {
  readonly endpoints: Readonly<Record<string, EndpointView>>;
  readonly endedContainers?: Readonly<Record<string, string>>;
}

export interface PoolView {
  readonly record: PoolRecord;
  readonly phase: PoolPhase;
  readonly counts: PoolCounts;
  readonly updated: PoolCounts;
  readonly conditions: readonly PoolCondition[];
}

export interface QuotaView {
  readonly tenant: Tenant;
  readonly limits: QuotaAmounts;
  readonly used: QuotaAmounts;
}

export interface TemplateView {
  readonly record: TemplateRecord;
  readonly definition: InstanceDefinition;
}

export type FeatureGates = Readonly<
  Record<
    | 'volumes'
    | 'instanceType'
    | 'approvals'
    | 'envs'
    | 'autoscaling'
    | 'multiCluster'
    | 'terminal'
    | 'exec'
    | 'files'
    | 'processes'
    | 'logs'
    | 'pause'
    | 'quotas'
    | 'compatibleApi'
    | 'console',
    boolean
  >
>;

export interface ClusterView {
  readonly clusterId: string;
  readonly isLocal: boolean;
  readonly status: 'Connected' | 'Disconnected';
  readonly lastHeartbeat: number | undefined;
  readonly route?: RouteView;
  /** In ms since the epoch; absent after it joined. */
  readonly invitedUntil?: number;
  /** Last refusal of a daemon on a copy of its data; absent if none tries now. */
  readonly copyRefusedAt?: number;
}

export interface RouteView {
  readonly manager: string;
  /** Calls rotate over the open links. */
  readonly links: readonly LinkView[];
}

export interface SandboxStatistics {
  readonly total: number;
  readonly byStatus: ReadonlyMap<SandboxStatus, number>;
  readonly byNamespace: ReadonlyMap<string, number>;
}

/** The current record, and the template's new spec and version. */
export interface PoolSyncView {
  readonly record: PoolRecord;
  readonly spec: TemplateSpec;
  readonly version: string;
}

export interface PageRequest {
  readonly limit: number;
  readonly offset: number;
}
export interface Page<T> extends PageRequest {
  readonly items: readonly T[];
  readonly total: number;
}

export interface ObservedMember {
  readonly name: string;
  readonly clusterId: string;
  readonly state: MemberState;
  readonly config: MemberConfig;
  readonly idle: number;
  readonly running: number;
  readonly desired: number;
  readonly current: number;
  readonly pending: number;
  readonly saturatedUntil: number | undefined;
  readonly autoscaling: boolean;
  readonly headroom: number;
  readonly updateRevision: string | undefined;
  readonly updated: number;
  readonly templateVersion: string | undefined;
}

export interface EnvView {
  readonly record: EnvRecord;
  readonly observed: readonly ObservedMember[];
  readonly conditions: readonly EnvCondition[];
  /** In ms since the epoch. */
  readonly at: number;
  readonly clusterId: string;
  readonly snapshots: ReadonlyMap<string, number>;
  readonly template?: TemplateRecord;
}

export interface MemberView {
  readonly env: EnvRecord;
  readonly member: EnvMember;
  readonly pool: PoolView | AwayPoolView;
}

export interface AwayPoolView {
  readonly clusterId: string;
  readonly shown: Readonly<Record<string, unknown>>;
}
