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
 * Which instances `replicas` counts: Idle + Starting + Running (`total`), or the unclaimed ones
 * alone (`idle`).
 */
export type ReplicaSemantics = 'total' | 'idle';

/**
 * The breaker's durable part: start failures in a row, and until when nothing is started (ms; 0:
 * closed).
 */
export interface BreakerStatus {
  readonly failures: number;
  readonly pausedUntil: number;
  readonly reason: string;
}

export const CLOSED_BREAKER: BreakerStatus = { failures: 0, pausedUntil: 0, reason: '' };

export interface UpdateStrategy {
  /**
   * Whether a new revision of the template, or of what the owner asked for, reaches the idle
   * instances by itself.
   */
  readonly autoUpdate: boolean;
  /**
   * How many idle instances a rollout may take away at a time: a number, or a percentage of those
   * that should be there, as text.
   */
  readonly maxUnavailable: string;
}

export const DEFAULT_UPDATE_STRATEGY: UpdateStrategy = { autoUpdate: true, maxUnavailable: '25%' };

/**
 * `reason` is a word in CamelCase; `templateVersion` of the template that was tried, where there is
 * one.
 */
export interface Unresolved {
  readonly reason: string;
  readonly message: string;
  readonly templateVersion?: string;
}

/**
 * The last decision of its autoscaling group that was carried out on a pool: written together with
 * `replicas`, and never followed by an earlier one. Where it took away what was not needed,
 * `sparesMs` says how young an instance is that does not go for it.
 */
export interface CarriedDecision {
  readonly id: number;
  readonly sparesMs?: number;
}

/** A pool as the store keeps it. */
export interface PoolRecord {
  readonly uid: string;
  readonly revision: Revision;
  readonly name: string;
  /** Owner; its namespace is the pool's. */
  readonly owner: Tenant;
  /** Absent: the owner's alone. A member's pool has its env's. */
  readonly access?: 'team';
  readonly createdAt: number;
  /** Fingerprint of the request that made it, where that carried an Idempotency-Key. */
  readonly mark?: RequestFingerprint;
  /**
   * The env that it is a member of: the env says what it is; the pool's own owner says nothing but
   * `replicas`.
   */
  readonly env?: { readonly uid: string; readonly name: string };
  readonly replicas: number;
  /**
   * Says what the owner asks for by hand instead of `replicas`, for as long as that is not granted.
   */
  readonly requested?: number;
  /** Absent: none was carried out. */
  readonly decided?: CarriedDecision;
  /** Bounds of `replicas`, for whoever scales it. */
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  /** Says what the owner asks for. */
  readonly source: PoolSource;
  readonly updateStrategy: UpdateStrategy;
  /**
   * Version of the template that `definition` was rendered from; absent where the template is
   * inline.
   */
  readonly templateVersion?: string;
  /** Set while `definition` is that of an earlier source. */
  readonly unrendered?: true;
  /**
   * Why `definition` is still an earlier one, where what it should come from can't be rendered now.
   */
  readonly unresolved?: Unresolved;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The rendered definition of an instance, and its hash. */
  readonly definition: InstanceDefinition;
  readonly updateRevision: string;
  readonly breaker: BreakerStatus;
  /** As the leader saved them last; absent: nothing was remarkable yet. */
  readonly conditions?: readonly PoolCondition[];
  /** Set once deletion was asked for; the record goes when the last unclaimed instance has. */
  readonly deleting: false | 'keep-running' | 'force';
}

/**
 * Exact, by status. `idle` are ready to claim; `unavailable` were ready and are not now; `retiring`
 * are `stopping` ones that nobody claimed.
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
 * Moves with what the owner says of the pool and what its instances are started from, and not with
 * what is noted or shown beside that: what an `If-Match` is meant for. `updateRevision` stands for
 * the definition.
 */
export const wordRevisionOfPool = ({
  revision: _any,
  breaker: _noted,
  conditions: _shown,
  definition: _named,
  ...word
}: PoolRecord): Revision => contentHash(word);
