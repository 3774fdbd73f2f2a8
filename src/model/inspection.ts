import { Refusal } from './refusals.ts';

/** Kinds of actors that can be inspected. */
export const ACTOR_KINDS = ['sandbox', 'pool', 'member', 'group', 'approval'] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** State shown for an object without an actor, because its machine threw repeatedly. */
export const BROKEN = 'broken';

/** Plain JSON, for people. */
export type Shown =
  | string
  | number
  | boolean
  | null
  | readonly Shown[]
  | { readonly [field: string]: Shown };
export type ShownFields = { readonly [field: string]: Shown };

/** A transition between states. The name of a parallel state is its parts, separated by spaces. */
export interface Transition {
  /** Number of the actor's transition, from 1. */
  readonly number: number;
  readonly at: number;
  readonly event: string;
  /** Source of the event, if it gives one; else empty. */
  readonly cause: string;
  /** Empty if the actor was created by it. */
  readonly from: string;
  readonly to: string;
  /** Time spent in `from`, in ms. */
  readonly stoodMs: number;
}

/** A machine's intent without an answer yet. */
export interface PendingIntent {
  readonly intent: string;
  /** Age in ms. */
  readonly forMs: number;
  /**
   * Epoch of the lease under which the intent is carried out; absent if a request of the replica
   * waits for it.
   */
  readonly epoch?: number;
}

/** A time for which the actor waits. */
export interface AwaitedMoment {
  readonly what: string;
  readonly at: number;
}

/** An actor as seen by the replica that hosts it. */
export interface InspectedActor {
  readonly kind: ActorKind;
  readonly key: string;
  /** Display name. */
  readonly name: string;
  /** Determines its shard. */
  readonly shardKey: string;
  readonly state: string;
  readonly since: number;
  /** As the API shows it: a sandbox's status, a pool's phase. */
  readonly status?: string;
  readonly paused?: true;
  readonly context: ShownFields;
  readonly deadlines: readonly AwaitedMoment[];
  /** Reasons for the current state, one sentence each. */
  readonly why: readonly string[];
  /** The record on which it is based. */
  readonly record: ShownFields;
}

export interface ActorSummary {
  readonly kind: ActorKind;
  readonly key: string;
  readonly name: string;
  readonly state: string;
  readonly status?: string;
  readonly paused?: true;
  readonly since: number;
}

/** `busy`: not now, because a pending answer would be lost. `unknown`: the actor does not exist. */
export type RebuildOutcome = 'rebuilt' | 'busy' | 'unknown';

export const actorNotFound = (): Refusal =>
  new Refusal('NOT_FOUND', 'there is no such actor; GET /debug/actors lists them');

export const actorKindNotFound = (): Refusal =>
  new Refusal('NOT_FOUND', 'there is no such kind of actor');

export const replicaSilent = (replica: string): Refusal =>
  new Refusal('UNAVAILABLE', `replica ${replica} did not answer; try again`, { retryAfter: 1 });

export const rebuildTooEarly = (): Refusal =>
  new Refusal(
    'CONFLICT',
    'the actor waits for an answer that its successor would not know; try again',
  );
