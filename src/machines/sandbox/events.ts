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

export interface LaunchInput {
  readonly now: number;
  readonly launchOrder: LaunchOrder;
}

export type SandboxInput =
  | LaunchInput
  | { readonly now: number; readonly fact: InstanceFact & { readonly record: InstanceRecord } };

/** Times are in ms since the epoch. */
export type SandboxEvent =
  | { readonly type: 'LAUNCHED'; readonly record: InstanceRecord; readonly now: number }
  | { readonly type: 'LAUNCH_REFUSED'; readonly reason: string }
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
  /** Confirmed at the time of the effect. */
  | { readonly type: 'EXPIRED'; readonly reason: EndReason; readonly now: number }
  /** There was activity, perhaps on another replica. */
  | { readonly type: 'STILL_ACTIVE'; readonly activeAt: number; readonly now: number }
  /** This replica has seen everything written before. */
  | { readonly type: 'LEADING'; readonly now: number }
  /** Another replica carries out the intent. */
  | { readonly type: 'NOT_LEADING'; readonly now: number }
  | { readonly type: 'WORK_BEGAN'; readonly now: number }
  | { readonly type: 'WORK_ENDED'; readonly now: number }
  | { readonly type: 'CLOSED' }
  | { readonly type: 'CLOSE_OUTCOME_UNKNOWN'; readonly now: number }
  | { readonly type: 'DEADLINE'; readonly now: number };

/** The supervisor carries them out and answers with an event. */
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
   * Answered by EXPIRED or STILL_ACTIVE, by AMENDED if it was paused instead, or by FACT if its
   * record differs.
   */
  | { readonly type: 'confirm-expiry'; readonly reason: EndReason; readonly claim: Claim }
  /** An uncached read. `patient`: only the leader carries it out. */
  | { readonly type: 'look'; readonly patient?: true }
  /** Writes history, then the quota, then the record. */
  | { readonly type: 'close'; readonly finished?: FinishedSandbox }
  | {
      readonly type: 'report-start';
      readonly outcome: 'started' | 'failed' | 'refused' | 'deferred';
      readonly reason: string;
    };

export type Ended = { readonly at: number } & Pick<
  Gone,
  'exitCode' | 'removed' | 'outOfMemory' | 'remains'
>;

export interface SandboxContext {
  readonly id: string;
  readonly poolUid: string;
  /** Kept until the launch is known to have taken effect. */
  readonly launchOrder: LaunchOrder | undefined;
  readonly record: InstanceRecord | undefined;
  readonly startedAt: number | undefined;
  readonly availableAt: number | undefined;
  /** As seen by this replica on a healthy node. */
  readonly unreadyAt?: number;
  /** When its readiness last changed, as recorded at its node. */
  readonly since?: number;
  readonly unready?: string;
  readonly hindrance?: StartHindrance;
  readonly unlaunched?: boolean;
  /** If this replica launched it. */
  readonly launchedAt?: number;
  readonly endsBy?: number;
  /** `until` is the request's deadline. */
  readonly claiming:
    | { readonly claim: Claim; readonly until: number; readonly repeated: boolean }
    | undefined;
  readonly activeAt: number;
  /** It is not idle while commands run. */
  readonly working: number;
  readonly end: End | undefined;
  readonly asked: boolean;
  readonly forgotten: boolean;
  readonly gone: Ended | undefined;
  readonly endedContainers?: Readonly<Record<string, string>>;
  /** The supervisor sends DEADLINE then or later. */
  readonly deadline: number | undefined;
}

/** For code that must not depend on state names. */
export type SandboxTag =
  /** Launched and never ready yet. */
  | 'awaited'
  /** Perhaps running. */
  | 'notReady'
  /** Its record may still look unchanged. */
  | 'endUnderWay'
  /** Refused, or late. */
  | 'endFailed'
  /** A restart may lose it, so a DELETE is not answered yet. */
  | 'endNotDurable'
  | 'endDurable';
