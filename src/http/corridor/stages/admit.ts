import type { Admission } from '../../limits/admission.ts';
import type { Stage } from './exchange.ts';

/**
 * Lets a caller's request go on where their key's rate allows it, in their tenant's turn on the
 * event loop. Most requests have had that turn before anything was spent on them.
 */
export const admit =
  ({ admission }: { readonly admission: Pick<Admission, 'admit'> }): Stage =>
  async ({ caller, context }, next) => {
    const turn = caller && admission.admit(caller, context.req);
    if (turn) await turn;
    await next();
  };
