import type { Revision } from './identifiers.ts';
import type { RequestMark } from './request-mark.ts';
import type { InstanceDefinition } from './template.ts';
import type { Tenant } from './tenant.ts';

export const POOL_PHASES = ['Pending', 'Ready', 'Scaling', 'Updating', 'Degraded', 'Deleting', 'Failed'] as const;
export type PoolPhase = (typeof POOL_PHASES)[number];

/** Which instances `replicas` counts: Idle + Starting + Running (`total`), or the unclaimed ones alone (`idle`). */
export type ReplicaSemantics = 'total' | 'idle';

/** The breaker's durable part: start failures in a row, and until when nothing is started (ms; 0: closed). */
export interface BreakerStatus {
  readonly failures: number;
  readonly pausedUntil: number;
  readonly reason: string;
}

export const CLOSED_BREAKER: BreakerStatus = { failures: 0, pausedUntil: 0, reason: '' };

/** A pool as the store keeps it. */
export interface PoolRecord {
  readonly uid: string;
  readonly revision: Revision;
  readonly name: string;
  /** Owner; its namespace is the pool's. */
  readonly owner: Tenant;
  readonly createdAt: number;
  /** Of the request that made it, where that carried an Idempotency-Key. */
  readonly mark?: RequestMark;
  readonly replicas: number;
  readonly templateName: string;
  readonly templateVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The rendered definition of an instance, and its hash. */
  readonly definition: InstanceDefinition;
  readonly updateRevision: string;
  readonly breaker: BreakerStatus;
  /** Set once deletion was asked for; the record goes when the last unclaimed instance has. */
  readonly deleting: false | 'keep-running' | 'force';
}

/** Exact, by status. `idle` are ready to claim; `unavailable` were ready and are not now. */
export interface PoolCounts {
  readonly starting: number;
  readonly idle: number;
  readonly unavailable: number;
  readonly running: number;
  readonly stopping: number;
  readonly failed: number;
}

export const NO_INSTANCES: PoolCounts = { starting: 0, idle: 0, unavailable: 0, running: 0, stopping: 0, failed: 0 };
