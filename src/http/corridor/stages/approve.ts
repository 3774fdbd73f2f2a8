import type { Admission } from '../../limits/admission.ts';
import type { Context } from '../../reply/context.ts';
import { mayBeHeld, passOf, type GatingDeps } from '../approval-gating.ts';
import { readWhole } from '../request-body.ts';
import type { Exchange, Stage } from './exchange.ts';

interface ApproveDeps {
  /** Absent: no request waits for a person. */
  readonly gating?: GatingDeps;
  readonly admission: Admission;
  readonly terms: { readonly surface?: object | undefined };
}

/**
 * Lets the rules of approval pass, hold or refuse the request, and finds the key under which it has
 * its effect once: of the client, of its approval, or of the manager that passes the claim on.
 */
export const approve =
  (deps: ApproveDeps): Stage =>
  async (exchange, next) => {
    await rule(deps, exchange);
    const { context, pass, overLink } = exchange;
    const given = mayBeKeyed(exchange) ? keyIn(context) : undefined;
    exchange.key = given ?? pass.key ?? overLink.key;
    await next();
  };

/** A POST, unless its row ignores an Idempotency-Key. */
export const mayBeKeyed = ({ row }: Pick<Exchange, 'row'>): boolean =>
  row.method === 'POST' && row.effect?.kind !== 'unkeyed';

const rule = async (
  { gating, admission, terms }: ApproveDeps,
  exchange: Exchange,
): Promise<void> => {
  const { row, context, caller, bytes, value, unknown, requireThere } = exchange;
  if (!caller || !gating || !mayBeHeld(gating, row)) return;
  const { pass, request } = await passOf(gating, {
    ...{ row, context, caller, bytes, value, unknown, requireThere },
    request: exchange.request,
    api: terms.surface ? 'compatible' : 'REST',
    readStream: () => readWhole(context.req, context.res, admission),
  });
  exchange.pass = pass;
  exchange.request = request;
};

const keyIn = ({ req }: Context): string | undefined => {
  const key = req.headers['idempotency-key'];
  return typeof key === 'string' ? key : undefined;
};
