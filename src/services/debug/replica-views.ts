import type { Coordination } from '../../contracts/coordination.ts';
import { type ActorKind, replicaSilent } from '../../model/inspection.ts';
import { invalidArgument, Refusal, type RefusalCode } from '../../model/refusals.ts';
import type { TransitionQuestion } from './transition-subscriptions.ts';

/** In ms. */
const ASKED_MS = 1_000;

export type ReplicaQuestion =
  | { readonly about: 'actor' | 'rebuild'; readonly kind: ActorKind; readonly key: string }
  | TransitionQuestion
  | { readonly about: 'queues' | 'driver' | 'reflectors' };

type Answered<T> =
  | { readonly value: T }
  | { readonly refused: { readonly code: RefusalCode; readonly message: string } };

export interface ReplicaViewsDeps {
  readonly coordination: Pick<Coordination, 'askReplica' | 'replicas'>;
  readonly replica: string;
}

/**
 * Also refuses with INVALID_ARGUMENT if the replica is not alive, and with UNAVAILABLE if it does
 * not answer within a second.
 */
export const viewOf = async <T>(
  { coordination, replica: own }: ReplicaViewsDeps,
  replica: string,
  asked: { readonly question: ReplicaQuestion; readonly here: () => T | Promise<T> },
): Promise<T> => {
  if (replica === own) return await asked.here();
  const live = coordination.replicas();
  if (!live.includes(replica))
    throw invalidArgument('replica', 'is not the name of a live replica', live);
  const text = await coordination.askReplica(replica, JSON.stringify(asked.question), ASKED_MS);
  if (text === undefined) throw replicaSilent(replica);
  const answered = JSON.parse(text) as Answered<T>; // from a replica of the same service
  if ('refused' in answered)
    throw new Refusal(
      answered.refused.code,
      answered.refused.message,
      answered.refused.code === 'UNAVAILABLE' ? { retryAfter: 1 } : {},
    );
  return answered.value;
};

/** Rejects on unexpected errors that the question did not cause. */
export const answerText = async (look: () => unknown): Promise<string> => {
  try {
    return JSON.stringify({ value: await look() });
  } catch (error) {
    if (error instanceof Refusal)
      return JSON.stringify({ refused: { code: error.code, message: error.message } });
    throw error;
  }
};
