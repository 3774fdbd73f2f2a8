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
 * Reason why an instance ended. Sandpool ended it for `deleted`, `force-deleted`, `idle-timeout`,
 * `max-lifetime` and `claim-failed` (a file of its claim could not be written). Otherwise it died
 * or never lived.
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

/**
 * A tenant's claim on an instance, durable with the record. Times are milliseconds since the epoch.
 */
export interface Claim {
  readonly owner: Tenant;
  readonly claimedAt: number;
  /** Milliseconds without activity until the end; 0 for never. */
  readonly idleTimeoutMs: number;
  /** Maximum lifetime in ms from the claim; 0 for no limit. */
  readonly maxLifetimeMs: number;
  /** Fixed end, independent of activity; absent if the claim sets none. A pause postpones it. */
  readonly endsAt?: number;
  /**
   * Fingerprint of the claiming request. It identifies the claim, and a repeat under the same
   * Idempotency-Key finds its effect.
   */
  readonly mark?: RequestFingerprint;
  /** The claim's metadata, for display and search. */
  readonly metadata?: TextPairs;
  /** Variables for processes in the sandbox: see ClaimEnv. */
  readonly sealedEnv?: string;
  /** A call that needs a running sandbox resumes it; otherwise such a call is refused. */
  readonly autoResume?: true;
  /** Pauses the sandbox at `endsAt` instead of ending it. */
  readonly autoPause?: true;
  /** Start of the pause; absent if the sandbox runs. The idle timeout stops during a pause. */
  readonly pausedAt?: number;
}

export interface End {
  readonly reason: EndReason;
  /** Exit code of the main process; null if unknown. */
  readonly exitCode: number | null;
}

/**
 * The record of every instance from its start. `idle` until it is claimed; `ending` once its end is
 * durable. The process itself shows whether it is starting, available or gone; the record never
 * does.
 */
export interface InstanceRecord {
  readonly id: InstanceId;
  readonly revision: Revision;
  readonly state: 'idle' | 'claimed' | 'ending';
  readonly poolUid: string;
  readonly poolName: string;
  /** The pool's owner, and the sandbox's namespace. */
  readonly poolOwner: Tenant;
  readonly createdAt: number;
  readonly updateRevision: string;
  readonly cpu: string;
  readonly memory: string;
  readonly containerImages: Readonly<Record<string, string>>;
  /** By name; absent if there are none. */
  readonly endpoints?: Readonly<Record<string, InstanceEndpoint>>;
  /** The sandbox has the host's network: any process of the host may listen on a port. */
  readonly onHost?: true;
  readonly startupTimeoutMs: number;
  /**
   * Launched for one claim and not part of the pool's idle set: no other claim gets it. The
   * instance is retired unless it is claimed by this time (ms since the epoch).
   */
  readonly claimBy?: number;
  readonly claim?: Claim;
  readonly end?: End;
}

/** `onHost`: the port is on the host's network. */
export interface InstanceEndpoint extends Endpoint {
  readonly onHost: boolean;
}

/** Input of a launch: the unwritten record and the rendered definition. */
export interface LaunchOrder {
  readonly record: Omit<InstanceRecord, 'revision' | 'state' | 'claim' | 'end'>;
  readonly definition: InstanceDefinition;
  /** The pool's labels from its owner; absent if there are none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Like `labels`. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Reason why an instance can't start without a change from outside: no node has capacity, its image
 * is unavailable, or its container can't be created.
 */
export type StartHindrance = 'Unschedulable' | 'ImageUnavailable' | 'ContainerNotCreated';

/**
 * The driver's view of the instance's process. `since`: time of this state, if the runtime reports
 * it. `endsBy`: time of the forced end of a terminating process (ms since the epoch).
 */
export type Vitals =
  /**
   * `reason`: why it is not ready yet, if known; `advice`: a remedy if it never becomes ready.
   * `unlaunched`: only its record exists; the record's writer is about to start the process, or
   * died before.
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
   * `nodeInTrouble`: the node is the cause, and the instance may be well. `nodeLeaving`: its node
   * is being drained, so an unclaimed instance must be replaced at once.
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
   * Containers other than the first that ended by themselves, and how. The sandbox may continue
   * without them.
   */
  readonly endedContainers?: Readonly<Record<string, string>>;
}

/** Describes for people how containers of an instance ended. */
export const wordsOfEnded = (ended: Readonly<Record<string, string>>): string =>
  Object.entries(ended)
    .map(([name, how]) => `its container "${name}" has ended: ${how}`)
    .join('; ');

/** The main process has certainly ended, and so have the others unless it `remains`. */
export interface Gone {
  readonly kind: 'gone';
  readonly exitCode: number | null;
  readonly reason: string;
  /** Somebody removed it; it did not end by itself. */
  readonly removed?: true;
  /** The main process exceeded its memory limit. */
  readonly outOfMemory?: true;
  /** Other containers of the instance still run. */
  readonly remains?: true;
  /** Time of the forced end of those containers, which are terminating. */
  readonly endsBy?: number;
}

/**
 * A driver's report on one instance: its record (absent if it no longer exists) and its process.
 */
export interface InstanceFact {
  readonly id: InstanceId;
  readonly record: InstanceRecord | undefined;
  readonly vitals: Vitals;
  /**
   * The store was replaced, perhaps by an older copy: earlier knowledge of the instance is invalid.
   */
  readonly afresh?: true;
  /** Processes started in the instance have ended, while it continues; the reason. */
  readonly programsEnded?: string;
}

/** A finished sandbox (claimed at some time), as history keeps it. */
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

/**
 * Port of the code interpreter's server (src/http/e2b/interpreter), which runs any code sent to it.
 */
export const INTERPRETER_PORT = 49_999;
