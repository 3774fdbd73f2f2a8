import type { MachineState } from '../../actors/inspection/machines.ts';
import type { OutboxReport } from '../../actors/runtime/actor-runtime.ts';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import type { WebhookReport } from '../../model/approvals/webhook-report.ts';
import type {
  ActorKind,
  ActorSummary,
  AwaitedMoment,
  PendingIntent,
  Shown,
  ShownFields,
  Transition,
} from '../../model/inspection.ts';
import type { Caller } from '../../model/tenant.ts';
import type { AuditList, AuditRequest } from './audit-view.ts';
import type { LogLevels } from './log-levels.ts';

/** For keys with the admin role. Each shows this replica's own view unless stated otherwise. */
export interface DebugOperations {
  /** An actor that changes during the listing may appear twice or not at all. */
  readonly listActors: (caller: Caller, request: ActorsRequest) => ActorsPage;
  /**
   * As seen by the leader or the given replica; by this one if that does not answer. Refuses with
   * NOT_FOUND.
   */
  readonly getActor: (caller: Caller, name: ActorName, replica?: string) => Promise<ActorView>;
  /** Refuses with NOT_FOUND, with CONFLICT while an answer is pending, or with UNAVAILABLE. */
  readonly rebuildActor: (caller: Caller, name: ActorName, replica?: string) => Promise<ActorView>;
  /**
   * Each transition after this resolves, as the actor's leader sees it. Refuses with NOT_FOUND or
   * TOO_MANY_STREAMS.
   */
  readonly followActor: (caller: Caller, name: ActorName) => Promise<ActorFollow>;
  readonly getMachine: (kind: ActorKind) => MachineView;
  /**
   * These three default to this replica. They refuse with INVALID_ARGUMENT if the replica is not
   * alive, with UNAVAILABLE if it does not answer.
   */
  readonly getQueues: (replica?: string) => Promise<QueuesReport>;
  readonly getDriver: (replica?: string) => Promise<DriverReport>;
  readonly getReflectors: (replica?: string) => Promise<ReflectorsReport>;
}

export interface ActorsRequest {
  readonly kind?: ActorKind;
  readonly state?: string;
  readonly pool?: string;
  readonly limit: number;
  readonly after?: ActorsCursor;
}

export interface ActorsCursor {
  readonly kind: ActorKind;
  readonly group: string;
  readonly state: string;
  readonly entry?: { readonly at: number; readonly id: string };
}

export interface ActorsPage {
  readonly items: readonly ActorSummary[];
  readonly next: ActorsCursor | undefined;
  readonly replica: string;
}

/** `text` is the actor's key or display name; a name without a namespace is in the caller's. */
export interface ActorName {
  readonly kind: ActorKind;
  readonly text: string;
}

export interface ActorView {
  readonly kind: ActorKind;
  readonly key: string;
  readonly name: string;
  readonly state: string;
  readonly since: number;
  readonly status?: string;
  readonly paused?: true;
  readonly why: readonly string[];
  /**
   * `replica` is the holder of its shard's lease, if known; `epoch`, the lease's if the answering
   * replica holds it.
   */
  readonly leader: { readonly shard: number; readonly replica?: string; readonly epoch?: number };
  readonly context: ShownFields;
  readonly deadlines: readonly (AwaitedMoment & { readonly inMs: number })[];
  readonly transitions: readonly Transition[];
  readonly pending: readonly PendingIntent[];
  readonly record: {
    readonly known: ShownFields;
    readonly stored?: ShownFields;
    readonly unread?: string;
    readonly differs: readonly {
      readonly field: string;
      readonly actor: Shown;
      readonly record: Shown;
    }[];
  };
  readonly seenBy: {
    readonly replica: string;
    readonly note?: string;
  };
}

/**
 * `seen-by`: the replica whose view follows. `note`: reason why the view is not the leader's, or
 * why nothing follows. `missed`: some transitions at this point are lost.
 */
export type ActorNews =
  | { readonly kind: 'transition'; readonly transition: Transition }
  | { readonly kind: 'missed' }
  | { readonly kind: 'ended' }
  | { readonly kind: 'seen-by'; readonly replica: string; readonly note?: string };

export interface ActorFollow {
  /** Call it once; ends when the actor ends, or at an abort. */
  readonly news: (signal: AbortSignal) => AsyncIterable<ActorNews>;
  /** Idempotent. */
  readonly close: () => void;
}

export interface MachineView {
  readonly kind: ActorKind;
  readonly actors: number;
  readonly states: readonly (MachineState & { readonly count: number })[];
  readonly mermaid: () => string;
}

export interface QueuesReport {
  readonly replica: string;
  readonly shards: readonly { readonly shard: number; readonly epoch: number }[];
  readonly outboxes: Readonly<Record<'sandboxesAndPools' | 'members' | 'groups', OutboxReport>>;
  readonly deadlines: { readonly count: number; readonly next?: number };
  readonly claimsWaiting: number;
  readonly actors: { readonly sandboxes: number; readonly pools: number; readonly rebuilt: number };
  readonly webhooks: readonly WebhookReport[];
}

export interface DriverReport {
  readonly replica: string;
  readonly isolation: string;
  readonly warnings: readonly string[];
  readonly problems: readonly string[];
  readonly work: Readonly<Record<string, number>>;
}

export interface ReflectorsReport {
  readonly replica: string;
  readonly reflectors: readonly MirrorReport[];
}

export interface ReplicaOperations {
  /** Refuses with FEATURE_DISABLED without an audit. */
  readonly listAudit: (caller: Caller, request: AuditRequest) => Promise<AuditList>;
  readonly getLogLevel: LogLevels['getLogLevel'];
  readonly setLogLevel: LogLevels['setLogLevel'];
  readonly shards: () => ShardReport;
}

export interface ShardReport {
  readonly replica: string;
  readonly replicas: readonly string[];
  readonly shards: readonly {
    readonly shard: number;
    readonly leading: boolean;
    readonly replica?: string;
  }[];
}
