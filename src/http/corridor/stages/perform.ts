import { tenantKey } from '../../../model/tenant.ts';
import type { Admission } from '../../limits/admission.ts';
import type { Answer, AnyRequest, Route } from '../route.ts';
import type { Stage } from './exchange.ts';

/** Runs the operation in one of the tenant's slots, or on another cluster. */
export const perform =
  (deps: { readonly admission: Pick<Admission, 'places' | 'working'> }): Stage =>
  async (exchange) => {
    const { row, caller, context, request, elsewhere } = exchange;
    const answer = await (elsewhere?.answer(request) ?? carryOut(row, deps, request));
    if (caller) deps.admission.working(caller);
    context.state.answered = answer.body;
    exchange.answer = answer;
  };

export const carryOut = (
  row: Route,
  { admission: { places } }: { readonly admission: Pick<Admission, 'places'> },
  request: AnyRequest,
): Promise<Answer> | Answer =>
  row.waits === true || row.waits?.(request) || !request.caller
    ? row.handle(request)
    : places.within({ operation: row.operationId, tenant: tenantKey(request.caller) }, () =>
        row.handle(request),
      );
