import { Refusal } from './refusals.ts';

export const ACTOR_KINDS = ['sandbox', 'pool', 'member', 'group', 'approval'] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

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

/** The name of a parallel state is its parts, separated by spaces. */
export interface Transition {
  /** From 1, per actor. */
  readonly number: number;
  readonly at: number;
  readonly event: string;
  readonly cause: string;
  readonly from: string;
  readonly to: string;
  /** Time spent in `from`, in ms. */
  readonly stoodMs: number;
}

export interface PendingIntent {
  readonly intent: string;
  /** Age in ms. */
  readonly forMs: number;
  /** Lease of the intent; absent if a request of the replica waits for it. */
  readonly epoch?: number;
}

export interface AwaitedMoment {
  readonly what: string;
  readonly at: number;
}

export interface InspectedActor {
  readonly kind: ActorKind;
  readonly key: string;
  readonly name: string;
  readonly shardKey: string;
  readonly state: string;
  readonly since: number;
  readonly status?: string;
  readonly paused?: true;
  readonly context: ShownFields;
  readonly deadlines: readonly AwaitedMoment[];
  readonly why: readonly string[];
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

/** `busy`: a pending answer would be lost. `unknown`: the actor does not exist. */
export type RebuildOutcome = 'rebuilt' | 'busy' | 'unknown';

export const actorNotFound = (): Refusal =>
  new Refusal('NOT_FOUND', 'there is no such actor; GET /debug/actors lists them');

export const actorKindNotFound = (): Refusal =>
  new Refusal('NOT_FOUND', 'this kind of actor does not exist');

export const replicaSilent = (replica: string): Refusal =>
  new Refusal('UNAVAILABLE', `replica ${replica} did not answer; try again`, { retryAfter: 1 });

export const rebuildTooEarly = (): Refusal =>
  new Refusal(
    'CONFLICT',
    'the actor waits for an answer that a rebuilt actor would not know; try again',
  );
