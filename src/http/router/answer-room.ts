import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { AnswerBudget, AnswerRoom } from '../../operations/sandboxes/answer-budget.ts';
import type { Context } from '../server/context.ts';

/**
 * Returns what gives a request its room in the budget for answers: none is taken before it is asked
 * for, and all is given back when the response is over.
 */
export const roomOf = (
  { res }: Context,
  answers: AnswerBudget,
  caller: Caller | undefined,
): (() => AnswerRoom) => {
  let room: AnswerRoom | undefined;
  return () => {
    if (room) return room;
    const taken = (room = answers.room(caller ? tenantKey(caller) : ''));
    if (res.destroyed) taken.release();
    else
      res.once('close', () => {
        taken.release();
      });
    return taken;
  };
};
