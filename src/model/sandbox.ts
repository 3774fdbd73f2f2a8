import type { TextPairs } from './claim-terms.ts';
import type { InstanceId, Revision } from './identifiers.ts';
import type { RequestFingerprint } from './request-fingerprint.ts';
import type { Endpoint, InstanceDefinition } from './templates/template.ts';
import type { Tenant } from './tenant.ts';

/** On the wire; `Completed` is a finished sandbox. */
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
 * Why an instance ended. `deleted`, `force-deleted`, `idle-timeout`, `max-lifetime`, `claim-failed`
 * (a file of its claim could not be written): ended by us; the rest died or never lived.
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
 * A tenant's hold on an instance, durable with the claim. Times are milliseconds since the epoch.
 */
export interface Claim {
  readonly owner: Tenant;
  readonly claimedAt: number;
  /** Milliseconds without activity until the end; 0 is never. */
  readonly idleTimeoutMs: number;
  /** Milliseconds from the claim until the end whatever happens; 0 is never. */
  readonly maxLifetimeMs: number;
  /** When it ends, whatever it does; absent: the claim names no moment. A pause puts it off. */
  readonly endsAt?: number;
  /**
   * Fingerprint of the request that claimed it: its claim is known by it, and a repetition under
   * the same Idempotency-Key finds its effect.
   */
  readonly mark?: RequestFingerprint;
  /** Says what the claim says of its sandbox: shown, and found by. */
  readonly metadata?: TextPairs;
  /** Variables of what is run in it: see ClaimEnv. */
  readonly sealedEnv?: string;
  /** A call that needs it running ends its pause; else such a call is refused. */
  readonly autoResume?: true;
  /** It is paused at the moment that `endsAt` says, and does not end. */
  readonly autoPause?: true;
  /** Since when it is paused; absent: it runs. While it is, its idle timeout stands still. */
  readonly pausedAt?: number;
}

export interface End {
  readonly reason: EndReason;
  /** The main process's exit code; null where it is unknown. */
  readonly exitCode: number | null;
}

/**
 * The record that every instance is born with. `idle` until it is claimed; `ending` once it is
 * durable that it ends. Whether its process is starting, available or gone is read off the process,
 * never written here.
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
  /** By name; absent: none. */
  readonly endpoints?: Readonly<Record<string, InstanceEndpoint>>;
  /** It has the host's network: what listens at a port may be anyone's. */
  readonly onHost?: true;
  readonly startupTimeoutMs: number;
  /**
   * It was launched for one claim, and is none of what its pool keeps ready: nobody else is given
   * it, and it is retired unless it is claimed by then (ms since the epoch).
   */
  readonly claimBy?: number;
  readonly claim?: Claim;
  readonly end?: End;
}

/** `onHost`: the port is one of the host's. */
export interface InstanceEndpoint extends Endpoint {
  readonly onHost: boolean;
}

/**
 * Describes what an instance is born from: its record, as yet unwritten, and its rendered
 * definition.
 */
export interface LaunchOrder {
  readonly record: Omit<InstanceRecord, 'revision' | 'state' | 'claim' | 'end'>;
  readonly definition: InstanceDefinition;
  /** The pool's, as its owner gave them; absent: there are none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** As `labels`. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Names what keeps an instance from starting until somebody or something changes: nowhere is room
 * for it, its image can't be had, or its container can't be made.
 */
export type StartHindrance = 'Unschedulable' | 'ImageUnavailable' | 'ContainerNotCreated';

/**
 * Describes what the driver sees of the instance's process. `since`: when it turned so, where
 * whoever runs it has noted that. `endsBy`: it is told to end, and is ended by force at that moment
 * (ms since the epoch).
 */
export type Vitals =
  /**
   * `reason`: why it is not ready yet, as far as is known; `advice`: what to do where it never is.
   * `unlaunched`: only its record is there; whoever wrote that is about to start the process, or
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
   * `nodeInTrouble`: that is why; the instance itself may be well. `nodeLeaving`: its node is to be
   * emptied, so that an unclaimed instance is to be replaced at once.
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
   * Containers beside the first that have ended by themselves, and how; whoever holds the instance
   * may go on without them.
   */
  readonly endedContainers?: Readonly<Record<string, string>>;
}

/** Says how containers of an instance have ended, for people. */
export const wordsOfEnded = (ended: Readonly<Record<string, string>>): string =>
  Object.entries(ended)
    .map(([name, how]) => `its container "${name}" has ended: ${how}`)
    .join('; ');

/**
 * Gone for certain: nothing of its main process runs any more, nor of the rest but where it
 * `remains`.
 */
export interface Gone {
  readonly kind: 'gone';
  readonly exitCode: number | null;
  readonly reason: string;
  /** Somebody took it away; it did not end by itself. */
  readonly removed?: true;
  /** Its main process needed more memory than its limit. */
  readonly outOfMemory?: true;
  /** Other containers of it still run. */
  readonly remains?: true;
  /** When those others, which are told to end, are ended by force. */
  readonly endsBy?: number;
}

/**
 * One thing that the driver knows of one instance: its record (absent: it has none any more) and
 * its process.
 */
export interface InstanceFact {
  readonly id: InstanceId;
  readonly record: InstanceRecord | undefined;
  readonly vitals: Vitals;
  /**
   * The store is another one than before, perhaps an older copy: what was known of the instance
   * counts no more.
   */
  readonly afresh?: true;
  /** Processes that were started in it have ended while it goes on: why. */
  readonly programsEnded?: string;
}

/** A finished sandbox (one that was claimed), as history keeps it. */
export interface FinishedSandbox {
  readonly id: InstanceId;
  readonly poolUid: string;
  readonly poolName: string;
  readonly owner: Tenant;
  /** Unknown of those that ended before it was kept. */
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

/** Port of the code interpreter's server (src/http/e2b/interpreter), which runs what it is sent. */
export const INTERPRETER_PORT = 49_999;
