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

/** An actor begins with a launch that was ordered. */
export interface LaunchInput {
  readonly now: number;
  readonly launchOrder: LaunchOrder;
}

/** Or with a fact that the driver reported. */
export type SandboxInput =
  | LaunchInput
  | { readonly now: number; readonly fact: InstanceFact & { readonly record: InstanceRecord } };

/** Times are milliseconds since the epoch. */
export type SandboxEvent =
  | { readonly type: 'LAUNCHED'; readonly record: InstanceRecord; readonly now: number }
  | { readonly type: 'LAUNCH_REFUSED'; readonly reason: string }
  /** There is no place for it now, which is not its fault. */
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
  /** Its expiry was confirmed at the moment of acting. */
  | { readonly type: 'EXPIRED'; readonly reason: EndReason; readonly now: number }
  /** Not expired: something happened in it at that moment, perhaps seen by another replica. */
  | { readonly type: 'STILL_ACTIVE'; readonly activeAt: number; readonly now: number }
  /** This replica leads now, and knows all that was written before it did. */
  | { readonly type: 'LEADING'; readonly now: number }
  /** The intent was another replica's to carry out: this one doesn't lead. */
  | { readonly type: 'NOT_LEADING'; readonly now: number }
  | { readonly type: 'WORK_BEGAN'; readonly now: number }
  | { readonly type: 'WORK_ENDED'; readonly now: number }
  | { readonly type: 'CLOSED' }
  | { readonly type: 'CLOSE_OUTCOME_UNKNOWN'; readonly now: number }
  | { readonly type: 'DEADLINE'; readonly now: number };

/** Effects as plain data; the supervisor carries them out and answers with an event. */
export type SandboxIntent =
  | { readonly type: 'launch'; readonly launchOrder: LaunchOrder }
  | { readonly type: 'claim'; readonly claim: Claim; readonly seen: InstanceRecord }
  /** `asked`: a request of this replica waits for it; else it is the leader's to carry out. */
  | {
      readonly type: 'retire';
      readonly seen: Revision;
      readonly namespace: string;
      readonly asked: boolean;
    }
  | { readonly type: 'release'; readonly end: End; readonly asked: boolean }
  /**
   * Answered by EXPIRED or STILL_ACTIVE, or by AMENDED where it was paused in place of its end;
   * there by FACT where its record says something else.
   */
  | { readonly type: 'confirm-expiry'; readonly reason: EndReason; readonly claim: Claim }
  /**
   * An uncached look; answered by FACT. `patient`: nothing waits for it, so that it is the leader's
   * to carry out.
   */
  | { readonly type: 'look'; readonly patient?: true }
  /** History, then the quota, then the record; `finished` is absent where nobody ever held it. */
  | { readonly type: 'close'; readonly finished?: FinishedSandbox }
  | {
      readonly type: 'report-start';
      readonly outcome: 'started' | 'failed' | 'refused' | 'deferred';
      readonly reason: string;
    };

/** When and how its main process ended; see `Gone`. */
export type Ended = { readonly at: number } & Pick<
  Gone,
  'exitCode' | 'removed' | 'outOfMemory' | 'remains'
>;

export interface SandboxContext {
  readonly id: string;
  readonly poolUid: string;
  /** Until the launch is known to have landed. */
  readonly launchOrder: LaunchOrder | undefined;
  readonly record: InstanceRecord | undefined;
  readonly startedAt: number | undefined;
  readonly availableAt: number | undefined;
  /**
   * Since when this replica has seen it not ready while its node is well; undefined: it is ready,
   * or its node is in trouble.
   */
  readonly unreadyAt?: number;
  /** When its readiness last changed, as was noted where it runs. */
  readonly since?: number;
  /** While it starts: what was last said of why it is not ready. */
  readonly unready?: string;
  /** While it starts: what keeps it from that, told in `unready`. */
  readonly hindrance?: StartHindrance;
  /** While it starts: only its record is there. */
  readonly unlaunched?: boolean;
  /** While it starts: when its process came to be under way, where this replica launched it. */
  readonly launchedAt?: number;
  /** It is told to end, and is ended by force at that moment. */
  readonly endsBy?: number;
  /** A claim under way, when its request gives up, and whether it was written a second time. */
  readonly claiming:
    | { readonly claim: Claim; readonly until: number; readonly repeated: boolean }
    | undefined;
  readonly activeAt: number;
  /** Commands under way: while there are any, it is not idle. */
  readonly working: number;
  readonly end: End | undefined;
  /** A request of this replica ends it. */
  readonly asked: boolean;
  /** Its record is known to be deleted. */
  readonly forgotten: boolean;
  readonly gone: Ended | undefined;
  /** Containers beside the first that have ended by themselves, and how. */
  readonly endedContainers?: Readonly<Record<string, string>>;
  /** Absolute; the supervisor sends DEADLINE at or after it. */
  readonly deadline: number | undefined;
}

/** Names what states have in common, for whoever asks for that and not for their names. */
export type SandboxTag =
  /** It was launched, and has never been ready. */
  | 'awaited'
  /** It is not ready now, though it may run. */
  | 'notReady'
  /** Its record may still be there as if nothing were. */
  | 'endUnderWay'
  /** It was refused, or is late. */
  | 'endFailed'
  /** A restart may forget it: a DELETE is not answered yet. */
  | 'endNotDurable'
  /** A restart goes on with it. */
  | 'endDurable';
