import type { Admission } from '../../limits/admission.ts';
import { mayBeHeld, passOf, type GatingDeps } from '../approval-gating.ts';
import { readWhole } from '../request-body.ts';
import type { Stage } from './exchange.ts';

interface ApproveDeps {
  readonly gating: GatingDeps;
  readonly admission: Admission;
  readonly terms: { readonly surface?: object | undefined };
}

/** Applies the approval rules: passes, delays or refuses the request. */
export const approve =
  ({ gating, admission, terms }: ApproveDeps): Stage =>
  async (exchange, next) => {
    const { row, context, caller, bytes, value, unknown, requireThere } = exchange;
    if (!caller || !mayBeHeld(gating, row)) return await next();
    const { pass, request } = await passOf(gating, {
      ...{ row, context, caller, bytes, value, unknown, requireThere },
      request: exchange.request,
      api: terms.surface ? 'compatible' : 'REST',
      readStream: () => readWhole(context.req, context.res, admission),
    });
    exchange.pass = pass;
    exchange.request = request;
    await next();
  };
