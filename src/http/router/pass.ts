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
