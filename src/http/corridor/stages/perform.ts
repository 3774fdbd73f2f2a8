import { carryOut } from '../marked-answer.ts';
import type { RequestLimits } from '../request-limits.ts';
import type { Stage } from './exchange.ts';

/** Carries the operation out, in one of the places that its tenant has. */
export const perform =
  ({ limits }: { readonly limits: Pick<RequestLimits, 'gate'> }): Stage =>
  async (exchange) => {
    const answer = await carryOut(exchange.row, { limits }, exchange.request);
    exchange.work?.working();
    exchange.context.state.answered = answer.body;
    exchange.answer = answer;
  };
