import { ApprovalUsed } from '../../model/approvals/approval-refusals.ts';
import type { EffectUnderGrant } from '../../operations/approvals/grant.ts';
import type { Answer } from './route.ts';

/** Says how a request goes on once the gate has looked at it. */
export interface Pass {
  /** There is no grant as yet: `use` asks for one, and does nothing. */
  readonly asks: boolean;
  /** The name under which the effect of a grant is carried out. */
  readonly key: string | undefined;
  readonly use: (
    work: (use: EffectUnderGrant) => Promise<Answer> | Answer,
  ) => Promise<Answer> | Answer;
  /** Notes that what was done can be told by its answer from now on. */
  readonly settle: () => Promise<void>;
}

/** No rule holds the request. */
export const FREE: Pass = {
  asks: false,
  key: undefined,
  use: (work) => work({ mayBeDone: false }),
  settle: async () => undefined,
};

/**
 * Has another cluster bring the effect about under the pass. Its refusal gives the grant back. A
 * grant is settled once an answer is there, but under a client's own Idempotency-Key. By that key,
 * or by the name of the grant, the cluster knows repetitions and answers them as it did at first.
 */
export const useAway = async (
  pass: Pass,
  markedBy: 'client' | 'grant' | 'nobody',
  work: () => Promise<Answer>,
): Promise<Answer> => {
  try {
    const answer = await pass.use(async () => {
      const given = await work();
      if (given.status >= 400 && given.status < 500) throw new RefusedAway(given);
      return given;
    });
    if (markedBy !== 'client' && answer.status < 500) await pass.settle();
    return answer;
  } catch (error) {
    if (error instanceof RefusedAway) return error.answer;
    if (error instanceof ApprovalUsed && markedBy === 'grant') return await work();
    throw error;
  }
};

/** Carries a refusal by another cluster past a pass. */
export class RefusedAway extends Error {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super('another cluster refused');
    this.answer = answer;
  }
}
