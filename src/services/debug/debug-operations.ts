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

/**
 * Shows what an operator looks at. For keys with the admin role; what is shown is this replica's
 * own view unless it says otherwise.
 */
export interface DebugOperations {
  /**
   * A page of actors; there is more as long as there is a `next`. Those that move meanwhile may be
   * shown twice, or not.
   */
  readonly listActors: (caller: Caller, request: ActorsRequest) => ActorsPage;
  /**
   * Shows the actor of the replica that leads it, or of the one that is named; this one's own where
   * that does not answer. Refuses with NOT_FOUND.
   */
  readonly getActor: (caller: Caller, name: ActorName, replica?: string) => Promise<ActorView>;
  /**
   * Makes the actor anew from its facts, and shows it then. Refuses with NOT_FOUND, with CONFLICT
   * while an answer is awaited, or with UNAVAILABLE.
   */
  readonly rebuildActor: (caller: Caller, name: ActorName, replica?: string) => Promise<ActorView>;
  /**
   * Each of its transitions once this has resolved, as the replica sees them that leads it. Refuses
   * with NOT_FOUND or TOO_MANY_STREAMS.
   */
  readonly followActor: (caller: Caller, name: ActorName) => Promise<ActorFollow>;
  readonly getMachine: (kind: ActorKind) => MachineView;
  /**
   * These three of any replica, or of this one. Refuse with INVALID_ARGUMENT for one that does not
   * live, with UNAVAILABLE where it says nothing.
   */
  readonly getQueues: (replica?: string) => Promise<QueuesReport>;
  readonly getDriver: (replica?: string) => Promise<DriverReport>;
  readonly getReflectors: (replica?: string) => Promise<ReflectorsReport>;
}

export interface ActorsRequest {
  /** Absent: of all kinds, one kind after the other. */
  readonly kind?: ActorKind;
  /** A state with what is inside it. */
  readonly state?: string;
  /** The uid of a pool, its name, or `{namespace}/{name}`. */
  readonly pool?: string;
  readonly limit: number;
  readonly after?: ActorsCursor;
}

/** The place where the last page ended. */
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

/**
 * `text`: the actor's key, or what people call it; a name without a namespace is one of the
 * caller's.
 */
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
   * `replica`: who holds the lease of its shard, where that is known; `epoch`: of the lease, where
   * the replica that answers holds it.
   */
  readonly leader: { readonly shard: number; readonly replica?: string; readonly epoch?: number };
  readonly context: ShownFields;
  readonly deadlines: readonly (AwaitedMoment & { readonly inMs: number })[];
  readonly transitions: readonly Transition[];
  readonly pending: readonly PendingIntent[];
  readonly record: {
    /** As the actor knows it. */
    readonly known: ShownFields;
    /** As it stands in the store; absent: there is none, or it could not be read. */
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
    /** Why it is not seen by whom it should be. */
    readonly note?: string;
  };
}

/**
 * `seen-by`: whose view follows, told at the beginning and when that changes; `note`: why it is not
 * its leader's, or why nothing follows. `missed`: some transitions in this place are not known any
 * more. `ended`: the actor is no more, and this was all.
 */
export type ActorNews =
  | { readonly kind: 'transition'; readonly transition: Transition }
  | { readonly kind: 'missed' }
  | { readonly kind: 'ended' }
  | { readonly kind: 'seen-by'; readonly replica: string; readonly note?: string };

export interface ActorFollow {
  /** To be called once; ends when the actor is no more, or at an abort. */
  readonly news: (signal: AbortSignal) => AsyncIterable<ActorNews>;
  /** Gives the seat back. May be repeated. */
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
  /** That it leads, and under which epoch. */
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

/** The audit, and what the replica that answers says of itself. */
export interface ReplicaOperations {
  /** Refuses with FEATURE_DISABLED where nothing is taken down. */
  readonly listAudit: (caller: Caller, request: AuditRequest) => Promise<AuditList>;
  /** The level of the log of the replica that answers. */
  readonly getLogLevel: LogLevels['getLogLevel'];
  readonly setLogLevel: LogLevels['setLogLevel'];
  readonly shards: () => ShardReport;
}

export interface ShardReport {
  readonly replica: string;
  readonly replicas: readonly string[];
  /** `leading`: by this replica. `replica`: who holds its lease, where that is known. */
  readonly shards: readonly {
    readonly shard: number;
    readonly leading: boolean;
    readonly replica?: string;
  }[];
}
