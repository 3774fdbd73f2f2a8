import type { Next } from 'koa';
import type { Tracer } from '../contracts/tracing.ts';
import { parseTraceParent } from '../model/trace-context.ts';
import type { Context } from './context.ts';

/**
 * Takes a request into its client's trace (W3C Trace Context), so that log lines name it. Where a collector is configured the request is a span of
 * the trace, or of one of its own, and the answer's `traceresponse` says which.
 */
export const traced = (tracer: Tracer | undefined) => (context: Context, next: Next): Promise<void> => {
  const parent = parseTraceParent(context.req.headers['traceparent']);
  if (!tracer) {
    if (parent) context.state.traceId = parent.traceId;
    return next();
  }
  return recorded(tracer.begin(parent), context, next);
};

const recorded = async (span: ReturnType<Tracer['begin']>, context: Context, next: Next): Promise<void> => {
  const { state } = context;
  state.traceId = span.traceId;
  if (span.sampled) state.step = span.step;
  context.res.setHeader('traceresponse', `00-${span.traceId}-${span.spanId}-${span.sampled ? '01' : '00'}`);
  await next();
  if (!span.sampled) return;
  const method = state.route === undefined ? 'other' : context.method;
  const route = state.route ?? 'none';
  span.end(`${method} ${route}`, {
    'http.request.method': method, 'http.route': route, 'http.response.status_code': context.status, 'sandpool.request_id': state.requestId,
    ...(state.errorCode === undefined ? {} : { 'error.type': state.errorCode }),
  }, context.status >= 500 ? 'failed' : 'good');
};
