import type { Revision } from '../../model/identifiers.ts';
import type {
  LaunchOrder,
  Claim,
  End,
  EndReason,
  FinishedSandbox,
  Gone,
  InstanceFact,
  InstanceRecord,
  StartHindrance,
} from '../../model/sandbox.ts';

/** Starts an actor with an ordered launch. */
export interface LaunchInput {
  readonly now: number;
  readonly launchOrder: LaunchOrder;
}

/** Starts an actor with a fact from the driver. */
export type SandboxInput =
  | LaunchInput
  | { readonly now: number; readonly fact: InstanceFact & { readonly record: InstanceRecord } };

/** All times are in ms since the epoch. */
export type SandboxEvent =
  | { readonly type: 'LAUNCHED'; readonly record: InstanceRecord; readonly now: number }
  | { readonly type: 'LAUNCH_REFUSED'; readonly reason: string }
  /** No room for it now, which is not its fault. */
  | { readonly type: 'LAUNCH_DEFERRED'; readonly reason: string }
  | { readonly type: 'LAUNCH_UNKNOWN'; readonly now: number }
  | { readonly type: 'FACT'; readonly fact: InstanceFact; readonly now: number }
  | { readonly type: 'CLAIM'; readonly claim: Claim; readonly now: number; readonly until: number }
  | { readonly type: 'CLAIMED'; readonly record: InstanceRecord; readonly now: number }
  | { readonly type: 'CLAIM_OUTCOME_UNKNOWN'; readonly now: number }
  | { readonly type: 'RETIRE'; readonly now: number }
  | { readonly type: 'RETIRED'; readonly now: number }
  | { readonly type: 'RETIRE_OUTCOME_UNKNOWN'; readonly now: number }
  | { readonly type: 'END'; readonly reason: EndReason; readonly now: number }
  | { readonly type: 'RELEASED'; readonly now: number }
  | { readonly type: 'RELEASE_OUTCOME_UNKNOWN'; readonly now: number }
  | { readonly type: 'AMENDED'; readonly record: InstanceRecord; readonly now: number }
  | { readonly type: 'ACTIVE'; readonly now: number }
  /** Its expiry is confirmed at the time of the effect. */
  | { readonly type: 'EXPIRED'; readonly reason: EndReason; readonly now: number }
  /** Not expired: there was activity, perhaps on another replica. */
  | { readonly type: 'STILL_ACTIVE'; readonly activeAt: number; readonly now: number }
  /** This replica now leads, and has seen everything written before. */
  | { readonly type: 'LEADING'; readonly now: number }
  /** This replica does not lead, so another one carries out the intent. */
  | { readonly type: 'NOT_LEADING'; readonly now: number }
  | { readonly type: 'WORK_BEGAN'; readonly now: number }
  | { readonly type: 'WORK_ENDED'; readonly now: number }
  | { readonly type: 'CLOSED' }
  | { readonly type: 'CLOSE_OUTCOME_UNKNOWN'; readonly now: number }
  | { readonly type: 'DEADLINE'; readonly now: number };

/** Effects as plain data. The supervisor carries them out and answers with an event. */
export type SandboxIntent =
  | { readonly type: 'launch'; readonly launchOrder: LaunchOrder }
  | { readonly type: 'claim'; readonly claim: Claim; readonly seen: InstanceRecord }
  /** `asked`: a request on this replica waits for it; otherwise only the leader carries it out. */
  | {
      readonly type: 'retire';
      readonly seen: Revision;
      readonly namespace: string;
      readonly asked: boolean;
    }
  | { readonly type: 'release'; readonly end: End; readonly asked: boolean }
  /**
   * Answered by EXPIRED or STILL_ACTIVE, by AMENDED if it was paused instead of ended, or by FACT
   * if its record differs.
   */
  | { readonly type: 'confirm-expiry'; readonly reason: EndReason; readonly claim: Claim }
  /**
   * An uncached read, answered by FACT. `patient`: nothing waits for it, so only the leader carries
   * it out.
   */
  | { readonly type: 'look'; readonly patient?: true }
  /** Writes history, then the quota, then the record. `finished` is absent if nobody claimed it. */
  | { readonly type: 'close'; readonly finished?: FinishedSandbox }
  | {
      readonly type: 'report-start';
      readonly outcome: 'started' | 'failed' | 'refused' | 'deferred';
      readonly reason: string;
    };

/** When and how its main process ended (see `Gone`). */
export type Ended = { readonly at: number } & Pick<
  Gone,
  'exitCode' | 'removed' | 'outOfMemory' | 'remains'
>;

export interface SandboxContext {
  readonly id: string;
  readonly poolUid: string;
  /** True until the launch is known to have taken effect. */
  readonly launchOrder: LaunchOrder | undefined;
  readonly record: InstanceRecord | undefined;
  readonly startedAt: number | undefined;
  readonly availableAt: number | undefined;
  /** Since when this replica has seen it unready on a healthy node; undefined otherwise. */
  readonly unreadyAt?: number;
  /** When its readiness last changed, as recorded at its node. */
  readonly since?: number;
  /** During its start: the last reason for which it is not ready. */
  readonly unready?: string;
  /** During its start: the published reason in `unready`. */
  readonly hindrance?: StartHindrance;
  /** During its start: only its record exists. */
  readonly unlaunched?: boolean;
  /** During its start: when its process began, if this replica launched it. */
  readonly launchedAt?: number;
  /** When its ordered end is forced. */
  readonly endsBy?: number;
  /** A claim in progress, the deadline of its request, and whether it was written again. */
  readonly claiming:
    | { readonly claim: Claim; readonly until: number; readonly repeated: boolean }
    | undefined;
  readonly activeAt: number;
  /** Running commands; it is not idle while there are any. */
  readonly working: number;
  readonly end: End | undefined;
  /** A request on this replica ends it. */
  readonly asked: boolean;
  /** Its record is deleted. */
  readonly forgotten: boolean;
  readonly gone: Ended | undefined;
  /** Secondary containers that ended, and how. */
  readonly endedContainers?: Readonly<Record<string, string>>;
  /** Absolute time; the supervisor sends DEADLINE then or later. */
  readonly deadline: number | undefined;
}

/** Properties that states share, for code that must not depend on state names. */
export type SandboxTag =
  /** Launched and never ready yet. */
  | 'awaited'
  /** Not ready now, but perhaps running. */
  | 'notReady'
  /** Its record may still look unchanged. */
  | 'endUnderWay'
  /** Refused, or late. */
  | 'endFailed'
  /** A restart may lose it, so a DELETE is not answered yet. */
  | 'endNotDurable'
  /** A restart continues it. */
  | 'endDurable';
