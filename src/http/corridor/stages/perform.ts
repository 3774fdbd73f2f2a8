import type { Admission } from '../../limits/admission.ts';
import { carryOut } from '../marked-answer.ts';
import type { Stage } from './exchange.ts';

/** Carries the operation out, in one of the places that its tenant has. */
export const perform =
  (deps: { readonly admission: Pick<Admission, 'places' | 'working'> }): Stage =>
  async (exchange) => {
    const { row, caller, context, request } = exchange;
    const answer = await carryOut(row, deps, request);
    if (caller) deps.admission.working(caller);
    context.state.answered = answer.body;
    exchange.answer = answer;
  };
