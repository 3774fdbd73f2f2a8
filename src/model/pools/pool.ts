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

/** `total` counts Idle, Starting and Running, `idle` only the unclaimed. */
export type ReplicaSemantics = 'total' | 'idle';

/** Consecutive start failures, and the time until which launches are paused (ms; 0 for closed). */
export interface BreakerStatus {
  readonly failures: number;
  readonly pausedUntil: number;
  readonly reason: string;
}

export const CLOSED_BREAKER: BreakerStatus = { failures: 0, pausedUntil: 0, reason: '' };

export interface UpdateStrategy {
  /** A change of the template or the owner's request replaces idle instances. */
  readonly autoUpdate: boolean;
  readonly maxUnavailable: string;
}

export const DEFAULT_UPDATE_STRATEGY: UpdateStrategy = { autoUpdate: true, maxUnavailable: '25%' };

export interface Unresolved {
  readonly reason: string;
  readonly message: string;
  readonly templateVersion?: string;
}

/**
 * Written with `replicas` and never replaced by an earlier decision. If it scales down, instances
 * younger than `sparesMs` stay.
 */
export interface CarriedDecision {
  readonly id: number;
  readonly sparesMs?: number;
}

export interface PoolRecord {
  readonly uid: string;
  readonly revision: Revision;
  readonly name: string;
  readonly owner: Tenant;
  /** Absent if only the owner has access. A member's pool has its env's value. */
  readonly access?: 'team';
  readonly createdAt: number;
  /** Set if the creating request had an Idempotency-Key. */
  readonly mark?: RequestFingerprint;
  /** Determines the pool, which is its member; the pool's owner only sets `replicas`. */
  readonly env?: { readonly uid: string; readonly name: string };
  readonly replicas: number;
  readonly requested?: number;
  readonly decided?: CarriedDecision;
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  readonly source: PoolSource;
  readonly updateStrategy: UpdateStrategy;
  /** Absent for an inline template. */
  readonly templateVersion?: string;
  /** Set while `definition` comes from an earlier source. */
  readonly unrendered?: true;
  readonly unresolved?: Unresolved;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly definition: InstanceDefinition;
  readonly updateRevision: string;
  readonly breaker: BreakerStatus;
  readonly conditions?: readonly PoolCondition[];
  /** The record is removed after the last unclaimed instance. */
  readonly deleting: false | 'keep-running' | 'force';
}

/** `unavailable` were ready before; `retiring` are unclaimed `stopping` instances. */
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
 * Changes with the owner's part and the definition (`updateRevision`), not with status fields; used
 * for `If-Match`.
 */
export const wordRevisionOfPool = ({
  revision: _any,
  breaker: _noted,
  conditions: _shown,
  definition: _named,
  ...word
}: PoolRecord): Revision => contentHash(word);
