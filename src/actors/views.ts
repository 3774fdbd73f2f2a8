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

/**
 * One sandbox as an operation answers it, live or finished. Times are milliseconds since the epoch;
 * absent is undefined.
 */
export interface SandboxView {
  readonly id: InstanceId;
  /** Revision of its record; a finished one has none. */
  readonly revision: Revision;
  readonly poolName: string;
  /** The claim's owner; of an unclaimed instance the pool's. */
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
  /** When it ends for want of activity; undefined where it never does. */
  readonly idleExpiresAt: number | undefined;
  /** When it ends whatever it does; undefined where no such moment is known. */
  readonly endsAt: number | undefined;
  /** Comes from its claim, while it lives. */
  readonly metadata?: TextPairs;
  /** It is Running, and stands still. */
  readonly paused?: true;
  /** It is paused at the moment that `endsAt` says. */
  readonly autoPause?: true;
  /** A call that needs it running ends its pause. */
  readonly autoResume?: true;
}

/** `direct`: shown by its own address on this machine, and not by a URL under the daemon. */
export interface EndpointView {
  readonly port: number;
  readonly scheme: 'http' | 'https';
  readonly direct: boolean;
}

export interface SandboxDetailView extends SandboxView {
  /** By name; none unless it is Running. */
  readonly endpoints: Readonly<Record<string, EndpointView>>;
  /** Containers beside the first that have ended by themselves, and how. */
  readonly endedContainers?: Readonly<Record<string, string>>;
}

export interface PoolView {
  readonly record: PoolRecord;
  readonly phase: PoolPhase;
  readonly counts: PoolCounts;
  /** Counts of the instances alone that have the record's updateRevision. */
  readonly updated: PoolCounts;
  readonly conditions: readonly PoolCondition[];
}

/** Describes what a user may have, and has, with what is being reserved. */
export interface QuotaView {
  readonly tenant: Tenant;
  readonly limits: QuotaAmounts;
  readonly used: QuotaAmounts;
}

export interface TemplateView {
  readonly record: TemplateRecord;
  /** Defines an instance of it. */
  readonly definition: InstanceDefinition;
}

/** A switch for each optional feature that is wired into the deployment, named as on the wire. */
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
  /** Undefined: it was not heard of since the daemon started. */
  readonly lastHeartbeat: number | undefined;
  /** How a manager reaches it; absent of its own cluster. */
  readonly route?: RouteView;
  /** It has never joined, and may by a token until then, in ms; absent: it has joined. */
  readonly invitedUntil?: number;
  /** When a daemon on a copy of its data was last refused; absent: none asks at this time. */
  readonly copyRefusedAt?: number;
}

export interface RouteView {
  /** The replica of the manager that says so: links are each replica's own. */
  readonly manager: string;
  /** Calls go over those that are open, in turn. */
  readonly links: readonly LinkView[];
}

export interface SandboxStatistics {
  readonly total: number;
  readonly byStatus: ReadonlyMap<SandboxStatus, number>;
  readonly byNamespace: ReadonlyMap<string, number>;
}

/**
 * Describes what a sync would make of a pool: its record as it stands, the template applied, and
 * its version.
 */
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

/** One member of an env as it is seen now. */
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
  /** When it was so. */
  readonly at: number;
  /** The local one. */
  readonly clusterId: string;
  /** By other cluster: when it last showed its members; one that never did is not there. */
  readonly snapshots: ReadonlyMap<string, number>;
  /** As it is now. */
  readonly template?: TemplateRecord;
}

export interface MemberView {
  readonly env: EnvRecord;
  readonly member: EnvMember;
  readonly pool: PoolView | AwayPoolView;
}

/** A pool of another cluster, as that one shows it. */
export interface AwayPoolView {
  readonly clusterId: string;
  /** The API's `Pool`. */
  readonly shown: Readonly<Record<string, unknown>>;
}
