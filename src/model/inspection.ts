import { Refusal } from './refusals.ts';

/** The kinds of actors that can be looked into. */
export const ACTOR_KINDS = ['sandbox', 'pool', 'member', 'group', 'approval'] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** The state in which what has no actor is shown, because its machine threw again and again. */
export const BROKEN = 'broken';

/** Plain JSON, for people to read. */
export type Shown =
  | string
  | number
  | boolean
  | null
  | readonly Shown[]
  | { readonly [field: string]: Shown };
export type ShownFields = { readonly [field: string]: Shown };

/**
 * A move from one state to another. A state of several regions is spelled as its parts, with spaces
 * between them.
 */
export interface Transition {
  /** Counts an actor's transitions, from 1. */
  readonly number: number;
  readonly at: number;
  readonly event: string;
  /** Says what brought the event, where it says so; empty where it does not. */
  readonly cause: string;
  /** Empty: it was made then. */
  readonly from: string;
  readonly to: string;
  /** How long it had stood in `from`, in milliseconds. */
  readonly stoodMs: number;
}

/** Describes what a machine asked for and nobody has answered yet. */
export interface PendingIntent {
  readonly intent: string;
  /** Since when, in milliseconds. */
  readonly forMs: number;
  /**
   * Epoch of the lease under which it is carried out; absent where a request of the replica waits
   * for it.
   */
  readonly epoch?: number;
}

/** A moment that the actor waits for. */
export interface AwaitedMoment {
  readonly what: string;
  readonly at: number;
}

/** An actor as the replica that hosts it sees it. */
export interface InspectedActor {
  readonly kind: ActorKind;
  readonly key: string;
  /** As people call it. */
  readonly name: string;
  /** Falls to a shard by it. */
  readonly shardKey: string;
  readonly state: string;
  readonly since: number;
  /** As the API shows it: a sandbox's status, a pool's phase. */
  readonly status?: string;
  /** A sandbox that stands still. */
  readonly paused?: true;
  readonly context: ShownFields;
  readonly deadlines: readonly AwaitedMoment[];
  /** Why it stands where it stands, one sentence each. */
  readonly why: readonly string[];
  /** The record that it goes by. */
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

/**
 * `busy`: not now, since an answer is awaited that the new actor would not know. `unknown`: there
 * is no such actor.
 */
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
