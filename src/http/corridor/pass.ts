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

/** Carries an answer of another cluster past the stages that keep and settle what was done. */
export class AnsweredElsewhere extends Error {
  /** Returns the answer, or throws the refusal. */
  readonly give: () => Answer;
  /** It refuses a request that had no effect, and never will have one. */
  readonly hadNoEffect: boolean;

  constructor(give: () => Answer, hadNoEffect: boolean) {
    super('another cluster answered');
    this.give = give;
    this.hadNoEffect = hadNoEffect;
  }
}
