import { NOT_FOR_ONCE, type EffectUnderGrant } from '../../services/approvals/grant.ts';
import type { Answer } from './route.ts';

/** How a request continues after the approval policy. */
export interface Pass {
  /** `use` requests a grant before it runs the work. */
  readonly asks: boolean;
  readonly key: string | undefined;
  readonly use: (
    work: (use: EffectUnderGrant) => Promise<Answer> | Answer,
  ) => Promise<Answer> | Answer;
  /** The stored answer now proves the effect. */
  readonly settle: () => Promise<void>;
}

export const FREE: Pass = {
  asks: false,
  key: undefined,
  use: (work) => work(NOT_FOR_ONCE),
  settle: async () => undefined,
};

/** Carries another cluster's answer past the stages that store answers and settle grants. */
export class AnsweredElsewhere extends Error {
  readonly give: () => Answer;
  /** The other cluster refused for good. */
  readonly hadNoEffect: boolean;

  constructor(give: () => Answer, hadNoEffect: boolean) {
    super('another cluster answered');
    this.give = give;
    this.hadNoEffect = hadNoEffect;
  }
}
