import { contentHash } from '../../lib/content-hash.ts';
import type { Revision } from '../identifiers.ts';
import type { PoolCondition } from './pool-condition.ts';
import type { PoolSource } from './pool-source.ts';
import type { RequestFingerprint } from '../request-fingerprint.ts';
import type { InstanceDefinition } from '../templates/template.ts';
import type { Tenant } from '../tenant.ts';

export const POOL_PHASES = [
  'Pending',
  'Ready',
  'Scaling',
  'Updating',
  'Degraded',
  'Deleting',
  'Failed',
] as const;
export type PoolPhase = (typeof POOL_PHASES)[number];

/**
 * Instances that `replicas` counts: Idle + Starting + Running (`total`), or only the unclaimed
 * (`idle`).
 */
export type ReplicaSemantics = 'total' | 'idle';

/**
 * Durable part of the circuit breaker: consecutive start failures, and the time until which
 * launches are paused (ms; 0 for closed).
 */
export interface BreakerStatus {
  readonly failures: number;
  readonly pausedUntil: number;
  readonly reason: string;
}

export const CLOSED_BREAKER: BreakerStatus = { failures: 0, pausedUntil: 0, reason: '' };

export interface UpdateStrategy {
  /**
   * Whether a change of the template or the owner's request replaces idle instances automatically.
   */
  readonly autoUpdate: boolean;
  /**
   * Most idle instances that a rollout may remove at a time: a number, or a percentage of the
   * desired size, as text.
   */
  readonly maxUnavailable: string;
}

export const DEFAULT_UPDATE_STRATEGY: UpdateStrategy = { autoUpdate: true, maxUnavailable: '25%' };

/** `reason` is in CamelCase; `templateVersion` is the version that failed, if there is one. */
export interface Unresolved {
  readonly reason: string;
  readonly message: string;
  readonly templateVersion?: string;
}

/**
 * Last applied decision of its autoscaling group. Written together with `replicas`, and never
 * replaced by an earlier decision. If it scales down, instances younger than `sparesMs` stay.
 */
export interface CarriedDecision {
  readonly id: number;
  readonly sparesMs?: number;
}

/** A stored pool. */
export interface PoolRecord {
  readonly uid: string;
  readonly revision: Revision;
  readonly name: string;
  /** Owner; its namespace is the pool's. */
  readonly owner: Tenant;
  /** Absent if only the owner has access. A member's pool has its env's value. */
  readonly access?: 'team';
  readonly createdAt: number;
  /** Fingerprint of the request that created it, if the request had an Idempotency-Key. */
  readonly mark?: RequestFingerprint;
  /**
   * The env that has this pool as a member. The env determines the pool; the pool's owner only sets
   * `replicas`.
   */
  readonly env?: { readonly uid: string; readonly name: string };
  readonly replicas: number;
  /** Size that the owner set by hand, until it is granted and becomes `replicas`. */
  readonly requested?: number;
  /** Absent before the first decision. */
  readonly decided?: CarriedDecision;
  /** Bounds of `replicas`, for autoscalers. */
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  /** The owner's request. */
  readonly source: PoolSource;
  readonly updateStrategy: UpdateStrategy;
  /**
   * Version of the template from which `definition` was rendered; absent for an inline template.
   */
  readonly templateVersion?: string;
  /** Set while `definition` comes from an earlier source. */
  readonly unrendered?: true;
  /** Reason why `definition` is outdated, if the current source can't be rendered now. */
  readonly unresolved?: Unresolved;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The rendered definition of an instance, and its hash. */
  readonly definition: InstanceDefinition;
  readonly updateRevision: string;
  readonly breaker: BreakerStatus;
  /** Last saved by the leader; absent before the first notable condition. */
  readonly conditions?: readonly PoolCondition[];
  /** Set on the delete request; the record is removed after the last unclaimed instance. */
  readonly deleting: false | 'keep-running' | 'force';
}

/**
 * Exact numbers by status. `idle` are ready to claim; `unavailable` were ready before; `retiring`
 * are unclaimed `stopping` instances.
 */
export interface PoolCounts {
  readonly starting: number;
  readonly idle: number;
  readonly unavailable: number;
  readonly running: number;
  readonly stopping: number;
  readonly retiring: number;
  readonly failed: number;
}

export const NO_INSTANCES: PoolCounts = {
  starting: 0,
  idle: 0,
  unavailable: 0,
  running: 0,
  stopping: 0,
  retiring: 0,
  failed: 0,
};

/**
 * Changes with the owner's part of the pool and with its definition, not with status fields; used
 * for `If-Match`. `updateRevision` stands for the definition.
 */
export const wordRevisionOfPool = ({
  revision: _any,
  breaker: _noted,
  conditions: _shown,
  definition: _named,
  ...word
}: PoolRecord): Revision => contentHash(word);
