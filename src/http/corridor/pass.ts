import { NOT_FOR_ONCE, type EffectUnderGrant } from '../../services/approvals/grant.ts';
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
  use: (work) => work(NOT_FOR_ONCE),
  settle: async () => undefined,
};

export type WorkAway = (use: EffectUnderGrant) => Promise<Answer>;

/**
 * Has another cluster bring the effect about under the pass, whose grant is good for one: an answer
 * settles it, a refusal gives it back, and without a word it is left open for a repetition.
 */
export const useAway = async (pass: Pass, work: WorkAway): Promise<Answer> => {
  const answer = await passAway(pass, work);
  if (answer.status < 400) await pass.settle();
  return answer;
};

/** Does the same, and leaves what was answered well to be settled. */
export const passAway = async (pass: Pass, work: WorkAway): Promise<Answer> => {
  try {
    return await pass.use(async (use) => {
      const given = await work(use);
      if (given.status >= 400 && given.status < 500) throw new RefusedAway(() => given);
      return given;
    });
  } catch (error) {
    if (error instanceof RefusedAway) return error.give();
    throw error;
  }
};

/** Carries past a pass what refuses a request that had no effect, and never will have one. */
export class RefusedAway extends Error {
  /** Returns the answer that refuses it, or throws the refusal. */
  readonly give: () => Answer;

  constructor(give: () => Answer) {
    super('refused, and nothing was done');
    this.give = give;
  }
}
