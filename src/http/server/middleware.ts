import type { Next } from 'koa';
import type { Log } from '../../contracts/log.ts';
import { inRequest } from '../../model/request-scope.ts';
import { invalidArgument, Refusal, unavailable } from '../../model/refusals.ts';
import type { Context, RequestState } from '../reply/context.ts';
import type { ShowError } from '../corridor/api-surface.ts';
import { errorAnswer } from '../reply/error-table.ts';
import type { Admission } from '../limits/admission.ts';
import { wasCutShort } from '../limits/prepared-answer.ts';
import { lingerAfter } from '../corridor/linger.ts';
import { ClientGone } from '../corridor/request-body.ts';
import { requestIdFrom } from '../limits/request-head.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { OngoingTrace, Tracer, TraceScope } from '../../contracts/tracing.ts';
import { parseTraceParent, traceParentText, type TraceParent } from '../../model/trace-context.ts';
import type { AuditSink } from '../../contracts/audit.ts';
import { blankApiKeys } from '../../model/api-key-text.ts';

/** Adds the id to the answer and to detailed log lines. */
export const requestId =
  (log: Log) =>
  (context: Context, next: Next): Promise<void> => {
    const id = requestIdFrom(context.req.headers['x-request-id']);
    context.state.requestId = id;
    context.res.setHeader('X-Request-Id', id);
    if (!log.detailed) return next();
    log.trace(
      { requestId: id, method: context.method.slice(0, 32), path: context.path.slice(0, 256) },
      'request-began',
    );
    return inRequest(id, next);
  };

/**
 * Converts a thrown error to the error body. Logs an unexpected one with its cause, and hides it
 * from the client. Delays 429 and 503 for a tenant that is refused repeatedly.
 */
export const errors =
  (log: Log, admission: Pick<Admission, 'hold'>, shown: ShowError = asItIs) =>
  async (context: Context, next: Next): Promise<void> => {
    try {
      await next();
    } catch (error) {
      if (wasCutShort(context.res)) {
        log.debug(
          { requestId: context.state.requestId, route: context.state.route, error },
          'cut-short',
        );
        context.state.errorCode = 'UNAVAILABLE';
        context.respond = false;
        return;
      }
      if (error instanceof ClientGone || context.res.destroyed) {
        log.debug(
          { requestId: context.state.requestId, route: context.state.route, error },
          'client-gone',
        );
        leaveUnanswered(context);
        return;
      }
      const answer = errorAnswer(error, context.state.requestId);
      const {
        status,
        body: { errorCode },
      } = answer;
      const fields = {
        requestId: context.state.requestId,
        traceId: context.state.traceId,
        route: context.state.route,
        error,
      };
      if (errorCode === 'INTERNAL') log.error(fields, 'request-failed');
      else if (!(error instanceof Refusal)) log.warn(fields, 'request-not-completed');
      if ((status === 429 || status === 503) && context.state.caller)
        await admission.hold(context.state.caller);
      const told = shown(answer, context.req);
      context.state.errorCode = errorCode;
      context.status = told.status;
      context.set(told.headers);
      context.remove('Cache-Control');
      context.set('Content-Type', 'application/json; charset=utf-8');
      if (!context.res.shouldKeepAlive) lingerAfter(context.req, context.res);
      context.body = JSON.stringify(told.body);
    }
  };

const asItIs: ShowError = (answer) => answer;

/**
 * One line per request; successful ones only in a detailed log. Never logs a query, a header or a
 * body.
 */
export const accessLog =
  (log: Log): Note =>
  (context, tookMs) => {
    const { status, state } = context;
    if (status < 400 && !log.detailed) return;
    const fields = {
      requestId: state.requestId,
      traceId: state.traceId,
      method: context.method.slice(0, 32),
      path: context.path.slice(0, 256),
      status,
      errorCode: state.errorCode,
      keyId: state.caller?.keyId,
      team: state.caller?.team,
      user: state.caller?.user,
      durationMs: Math.round(tookMs),
    };
    if (status >= 500) log.warn(fields, 'request-answered');
    else if (status >= 400) log.info(fields, 'request-answered');
    else log.debug(fields, 'request-answered');
  };

/** Refuses HTTP/1.1 without a Host, and all requests while the daemon stops. */
export const admit =
  (stopping: () => boolean) =>
  (context: Context, next: Next): Promise<void> => {
    if (stopping()) throw unavailable('the daemon is stopping');
    const { headers, httpVersion } = context.req;
    if (httpVersion === '1.1' && headers.host === undefined)
      throw invalidArgument('Host', 'the header is required');
    return next();
  };

const leaveUnanswered = (context: Context): void => {
  context.state.errorCode = 'CLIENT_GONE';
  context.status = 400;
  context.respond = false;
  context.res.destroy();
};

export type Note = (context: Context, tookMs: number) => void;

/**
 * Runs notes after the answer is written but before other input, so a client with an answer finds
 * its notes.
 */
export const notes =
  (log: Log, each: readonly Note[]) =>
  async (context: Context, next: Next): Promise<void> => {
    const began = performance.now();
    await next();
    const tookMs = performance.now() - began;
    // A tick queued by a microtask runs after all microtasks: Koa has sent the answer.
    process.nextTick(() => {
      try {
        for (const note of each) note(context, tookMs);
      } catch (error) {
        log.error({ requestId: context.state.requestId, error }, 'request-not-logged');
      }
    });
  };

/** Measures by route template, so clients can't create new metric labels. */
export const measured =
  (metrics: Metrics): Note =>
  (context, tookMs) => {
    const { route } = context.state;
    const which =
      route === undefined
        ? NONE
        : { method: context.method === 'HEAD' ? 'GET' : context.method, route };
    metrics.count('sandpool_http_requests_total', { ...which, status: String(context.status) });
    metrics.observe('sandpool_http_seconds', which, tookMs / 1_000);
  };

const NONE = { method: 'other', route: 'none' };

/**
 * Joins the client's trace (W3C Trace Context). With a tracer, records a span and returns
 * `traceresponse`. With a scope, propagates the trace to other services.
 */
export const traced =
  (tracer: Tracer | undefined, scope?: TraceScope) =>
  (context: Context, next: Next): Promise<void> => {
    const header = context.req.headers['traceparent'];
    if (header === undefined && !tracer) return next();
    const parent = parseTraceParent(header);
    const within = (trace: OngoingTrace): Promise<void> =>
      scope ? scope.within(trace, next) : next();
    if (tracer) return recorded(tracer.begin(parent), context, within);
    if (!parent) return next();
    context.state.traceId = parent.traceId;
    return within(passedOn(parent));
  };

/** Without a span. */
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

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/**
 * Audits each routed write, also refused ones, and reads under an approval rule. Only counts other
 * reads by admins, which show other tenants' data.
 */
export const audited =
  (audit: AuditSink, named: (value: unknown) => unknown = asIs): Note =>
  (context: Context & { readonly params?: Readonly<Record<string, string>> }) => {
    const { requestId, operation, caller, asked, answered, errorCode, isHeld } = context.state;
    if (operation === undefined) return;
    const params = textsOf(context.params ?? {});
    if (!WRITES.has(context.method) && !isHeld) {
      if (caller?.role === 'admin')
        audit.count({
          kind: 'read',
          caller,
          operation,
          ...(Object.keys(params).length > 0 ? { params } : {}),
        });
      return;
    }
    const target = {
      ...targetOf(
        named(asked),
        named(typeof answered === 'string' ? JSON.parse(answered) : answered),
      ),
      ...approvalOf(context.state),
    };
    audit.note({
      requestId,
      operation,
      caller,
      status: context.status,
      errorCode,
      ...(Object.keys(params).length > 0 ? { params } : {}),
      ...(Object.keys(target).length > 0 ? { target } : {}),
      ...(context.res.getHeader('Idempotency-Replayed') === undefined ? {} : { replayed: true }),
    });
  };

const asIs = (value: unknown): unknown => value;

const approvalOf = ({ approvalId, session, operation, asked }: RequestState) => {
  const decision = operation === 'decideApproval' && isObject(asked) ? asked : {};
  return textsOf({
    ...(approvalId === undefined ? {} : { approvalId }),
    ...(session ? { operator: session.operator, sessionId: session.sessionId } : {}),
    ...(typeof decision['decision'] === 'string' ? { decision: decision['decision'] } : {}),
    ...(typeof decision['scope'] === 'string' ? { scope: decision['scope'] } : {}),
  });
};

/** Names and ids, never secrets. */
const targetOf = (body: unknown, answer: unknown): Record<string, string> => {
  const named: Record<string, string> = {};
  takeNames(body, named);
  takeNames(answer, named);
  if (isObject(answer)) for (const name in answer) takeNames(answer[name], named);
  return named;
};

const NAMES = ['name', 'poolName', 'sandboxId', 'keyId', 'team', 'user', 'role'] as const;
const LONGEST = 256;

const takeNames = (from: unknown, named: Record<string, string>): void => {
  if (!isObject(from)) return;
  for (const name of NAMES) {
    const text = from[name];
    if (typeof text === 'string') named[name] = textOf(text);
  }
};

const textOf = (value: unknown): string => blankApiKeys(String(value).slice(0, LONGEST));

const textsOf = (values: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, textOf(value)]));

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
