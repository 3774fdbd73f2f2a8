import type { InstanceId, Revision } from '../model/identifiers.ts';
import type { PoolCounts, PoolPhase, PoolRecord } from '../model/pool.ts';
import type { EndReason, SandboxStatus } from '../model/sandbox.ts';
import type { Tenant } from '../model/tenant.ts';

/** One sandbox as an operation answers it, live or finished. Times are milliseconds since the epoch; absent is undefined. */
export interface SandboxView {
  readonly id: InstanceId;
  /** Of its record; of a finished one none. */
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
}

/** `direct`: shown by its own address on this machine, and not by a URL under the daemon. */
export interface EndpointView { readonly port: number; readonly scheme: 'http' | 'https'; readonly direct: boolean }

export interface SandboxDetailView extends SandboxView {
  /** By name; none unless it is Running. */
  readonly endpoints: Readonly<Record<string, EndpointView>>;
}

export interface PoolView {
  readonly record: PoolRecord;
  readonly phase: PoolPhase;
  readonly counts: PoolCounts;
}

export interface PageRequest { readonly limit: number; readonly offset: number }
export interface Page<T> extends PageRequest { readonly items: readonly T[]; readonly total: number }
