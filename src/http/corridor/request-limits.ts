import type { InFlightGate } from '../limits/overload.ts';
import type { ArrivingBodies } from './request-body.ts';
import type { AnswerBudget } from '../../actors/sandbox/commands/answer-budget.ts';
import type { UnreadAnswers } from '../reply/unread-answers.ts';
import type { KeyRates } from '../limits/key-rates.ts';
import type { CostlyTurns } from '../limits/costly-turns.ts';
import type { LoopTurns } from '../limits/loop-turns.ts';

/** Bounds what requests may take of this replica, in all and by tenant. */
export interface RequestLimits {
  readonly gate: InFlightGate;
  readonly arriving: ArrivingBodies;
  readonly answers: AnswerBudget;
  readonly unread: UnreadAnswers;
  readonly keyRates: KeyRates;
  readonly costly: CostlyTurns;
  readonly loopTurns: LoopTurns;
}
