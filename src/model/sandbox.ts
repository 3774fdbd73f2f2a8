import type { TextPairs } from './claim-terms.ts';
import type { InstanceId, Revision } from './identifiers.ts';
import type { RequestFingerprint } from './request-fingerprint.ts';
import type { Endpoint, InstanceDefinition } from './templates/template.ts';
import type { Tenant } from './tenant.ts';

/** API values; `Completed` is a finished sandbox. */
export const SANDBOX_STATUSES = [
  'Idle',
  'Starting',
  'Running',
  'Stopping',
  'Failed',
  'Completed',
] as const;
export type SandboxStatus = (typeof SANDBOX_STATUSES)[number];

/**
 * Sandpool ended it for `deleted`, `force-deleted`, `idle-timeout`, `max-lifetime` and
 * `claim-failed` (a file of its claim could not be written). Otherwise it died or never lived.
 */
export const END_REASONS = [
  'deleted',
  'force-deleted',
  'idle-timeout',
  'max-lifetime',
  'claim-failed',
  'exited',
  'oom-killed',
  'killed',
  'lost',
  'container-ended',
  'start-failed',
  'start-timeout',
  'retired',
] as const;
export type EndReason = (typeof END_REASONS)[number];

/** A tenant's claim, durable with the record. Times are ms since the epoch. */
export interface Claim {
  readonly owner: Tenant;
  readonly claimedAt: number;
  /** Without activity; 0 for never. */
  readonly idleTimeoutMs: number;
  /** From the claim; 0 for no limit. */
  readonly maxLifetimeMs: number;
  /** Fixed end, independent of activity. A pause postpones it. */
  readonly endsAt?: number;
  /** A repeat under the same Idempotency-Key finds the claim's effect. */
  readonly mark?: RequestFingerprint;
  readonly metadata?: TextPairs;
  /** See ClaimEnv. */
  readonly sealedEnv?: string;
  /** A call that needs a running sandbox resumes it; otherwise such a call is refused. */
  readonly autoResume?: true;
  /** Pauses the sandbox at `endsAt` instead of ending it. */
  readonly autoPause?: true;
  /** Absent if the sandbox runs. The idle timeout stops during a pause. */
  readonly pausedAt?: number;
}

export interface End {
  readonly reason: EndReason;
  readonly exitCode: number | null;
}

/**
 * `idle` until it is claimed; `ending` once its end is durable. Only the process shows whether it
 * is starting, available or gone.
 */
export interface InstanceRecord {
  readonly id: InstanceId;
  readonly revision: Revision;
  readonly state: 'idle' | 'claimed' | 'ending';
  readonly poolUid: string;
  readonly poolName: string;
  /** Its namespace is the sandbox's. */
  readonly poolOwner: Tenant;
  readonly createdAt: number;
  readonly updateRevision: string;
  readonly cpu: string;
  readonly memory: string;
  readonly containerImages: Readonly<Record<string, string>>;
  readonly endpoints?: Readonly<Record<string, InstanceEndpoint>>;
  /** Any process of the host may listen on a port. */
  readonly onHost?: true;
  readonly startupTimeoutMs: number;
  /** No other claim gets it. Retired unless it is claimed by this time (ms since the epoch). */
  readonly claimBy?: number;
  readonly claim?: Claim;
  readonly end?: End;
}

/** `onHost`: the port is on the host's network. */
export interface InstanceEndpoint extends Endpoint {
  readonly onHost: boolean;
}

export interface LaunchOrder {
  readonly record: Omit<InstanceRecord, 'revision' | 'state' | 'claim' | 'end'>;
  readonly definition: InstanceDefinition;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The instance can't start without a change from outside. */
export type StartHindrance = 'Unschedulable' | 'ImageUnavailable' | 'ContainerNotCreated';

/**
 * `since`: time of this state, if the runtime reports it. `endsBy`: forced end of a terminating
 * process (ms since the epoch).
 */
export type Vitals =
  /**
   * `advice`: a remedy if it never becomes ready. `unlaunched`: only its record exists; its writer
   * is about to start the process, or died before.
   */
  | (NotReady & {
      readonly kind: 'starting';
      readonly reason?: string;
      readonly advice?: string;
      readonly hindrance?: StartHindrance;
      readonly unlaunched?: true;
    })
  | { readonly kind: 'available'; readonly startedAt: number; readonly since?: number }
  /**
   * `nodeInTrouble`: the node is the cause, and the instance may be well. `nodeLeaving`: an
   * unclaimed instance must be replaced at once.
   */
  | (NotReady & {
      readonly kind: 'unavailable';
      readonly startedAt: number;
      readonly reason: string;
      readonly nodeInTrouble?: true;
      readonly nodeLeaving?: true;
    })
  | Gone;

interface NotReady {
  readonly since?: number;
  readonly endsBy?: number;
  /**
   * How containers other than the first ended by themselves. The sandbox may continue without them.
   */
  readonly endedContainers?: Readonly<Record<string, string>>;
}

export const wordsOfEnded = (ended: Readonly<Record<string, string>>): string =>
  Object.entries(ended)
    .map(([name, how]) => `its container "${name}" has ended: ${how}`)
    .join('; ');

/** The main process has certainly ended, and so have the others unless it `remains`. */
export interface Gone {
  readonly kind: 'gone';
  readonly exitCode: number | null;
  readonly reason: string;
  readonly removed?: true;
  readonly outOfMemory?: true;
  readonly remains?: true;
  /** Forced end of those containers. */
  readonly endsBy?: number;
}

export interface InstanceFact {
  readonly id: InstanceId;
  readonly record: InstanceRecord | undefined;
  readonly vitals: Vitals;
  /** The store was replaced, perhaps by an older copy: earlier knowledge is invalid. */
  readonly afresh?: true;
  /** Why processes in the instance have ended while it continues. */
  readonly programsEnded?: string;
}

export interface FinishedSandbox {
  readonly id: InstanceId;
  readonly poolUid: string;
  readonly poolName: string;
  readonly owner: Tenant;
  /** Unknown for sandboxes that ended before this field existed. */
  readonly createdAt?: number;
  readonly claimedAt: number;
  readonly startedAt: number | undefined;
  readonly terminatedAt: number;
  readonly recycledAt: number;
  readonly cpu: string;
  readonly memory: string;
  readonly containerImages: Readonly<Record<string, string>>;
  readonly endReason: EndReason;
  readonly exitCode: number | null;
}

/** The code interpreter's server (src/http/e2b/interpreter) runs any code sent to it. */
export const INTERPRETER_PORT = 49_999;
