import type { InFlightGate } from './overload.ts';
import type { ArrivingBodies } from '../router/request-body.ts';
import type { AnswerBudget } from '../../operations/sandboxes/answer-budget.ts';
import type { UnreadAnswers } from './unread-answers.ts';
import type { KeyRates } from './key-rates.ts';
import type { CostlyTurns } from './costly-turns.ts';
import type { LoopTurns } from './loop-turns.ts';

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
