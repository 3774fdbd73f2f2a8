import type { Next } from 'koa';
import type { OngoingTrace, Tracer, TraceScope } from '../../contracts/tracing.ts';
import { parseTraceParent, traceParentText, type TraceParent } from '../../model/trace-context.ts';
import type { Context } from './context.ts';

/**
 * Takes a request into its client's trace (W3C Trace Context), so that log lines name it. Where a
 * collector is configured the request is a span of the trace, or of one of its own, and the
 * answer's `traceresponse` says which. With a scope the trace goes on in what is asked of other
 * services.
 */
export const traced =
  (tracer: Tracer | undefined, scope?: TraceScope) =>
  (context: Context, next: Next): Promise<void> => {
    const parent = parseTraceParent(context.req.headers['traceparent']);
    const within = (trace: OngoingTrace): Promise<void> =>
      scope ? scope.within(trace, next) : next();
    if (tracer) return recorded(tracer.begin(parent), context, within);
    if (!parent) return next();
    context.state.traceId = parent.traceId;
    return within(passedOn(parent));
  };

/** As it came: nothing is recorded here. */
const passedOn = (parent: TraceParent): OngoingTrace => ({
  call: () => ({ traceparent: traceParentText(parent), ended: () => undefined }),
});

const recorded = async (
  span: ReturnType<Tracer['begin']>,
  context: Context,
  within: (trace: OngoingTrace) => Promise<void>,
): Promise<void> => {
  const { state } = context;
  state.traceId = span.traceId;
  if (span.sampled) state.step = span.step;
  context.res.setHeader(
    'traceresponse',
    traceParentText({ traceId: span.traceId, parentId: span.spanId, sampled: span.sampled }),
  );
  await within(span);
  if (!span.sampled) return;
  const method = state.route === undefined ? 'other' : context.method;
  const route = state.route ?? 'none';
  span.end(
    `${method} ${route}`,
    {
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': context.status,
      'sandpool.request_id': state.requestId,
      ...(state.errorCode === undefined ? {} : { 'error.type': state.errorCode }),
    },
    context.status >= 500 ? 'failed' : 'good',
  );
};
