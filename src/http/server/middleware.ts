import type { Next } from 'koa';
import type { Log } from '../../contracts/log.ts';
import { inRequest } from '../../model/request-scope.ts';
import { invalidArgument, Refusal, unavailable } from '../../model/refusals.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { Context } from './context.ts';
import type { ShowError } from '../router/api-surface.ts';
import { errorAnswer } from '../router/error-table.ts';
import type { RefusalPace } from '../limits/refusal-pace.ts';
import type { Note } from './notes.ts';
import { wasCutShort } from './prepared-answer.ts';
import { ClientGone } from '../router/request-body.ts';
import { requestIdFrom } from './request-id.ts';

/**
 * Gives every request its id, on the answer and on the lines of a detailed log about what it brings
 * about.
 */
export const requestId =
  (log: Log) =>
  (context: Context, next: Next): Promise<void> => {
    const id = requestIdFrom(context.req.headers['x-request-id']);
    context.state.requestId = id;
    context.res.setHeader('X-Request-Id', id);
    if (!log.detailed) return next();
    log.trace(
      { requestId: id, method: context.method.slice(0, 32), path: context.path.slice(0, 256) },
      'request began',
    );
    return inRequest(id, next);
  };

/**
 * Turns whatever was thrown into the error body. What is no refusal is logged with its cause; the
 * client gets none of it. A tenant that is refused again and again waits for these answers.
 */
export const errors =
  (log: Log, pace: Pick<RefusalPace, 'note' | 'hold'>, shown: ShowError = asItIs) =>
  async (context: Context, next: Next): Promise<void> => {
    try {
      await next();
      if (context.state.caller) pace.note(tenantKey(context.state.caller));
    } catch (error) {
      if (wasCutShort(context.res)) {
        log.debug(
          { requestId: context.state.requestId, route: context.state.route, error },
          'cut short, since the daemon stops',
        );
        context.state.errorCode = 'UNAVAILABLE';
        context.respond = false;
        return;
      }
      if (error instanceof ClientGone || context.res.destroyed) {
        log.debug(
          { requestId: context.state.requestId, route: context.state.route, error },
          'client gone',
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
      if (errorCode === 'INTERNAL') log.error(fields, 'request failed');
      else if (!(error instanceof Refusal)) log.warn(fields, 'request could not be carried out');
      if ((status === 429 || status === 503) && context.state.caller)
        await pace.hold(tenantKey(context.state.caller));
      const { headers, body } = shown(answer);
      context.state.errorCode = errorCode;
      context.status = status;
      context.set(headers);
      context.remove('Cache-Control');
      context.set('Content-Type', 'application/json; charset=utf-8');
      context.body = JSON.stringify(body);
    }
  };

const asItIs: ShowError = (answer) => answer;

/** One line a request: what was asked, by whom, how it went; never a query, a header or a body. */
export const accessLog =
  (log: Log): Note =>
  (context, tookMs) => {
    const { status, state } = context;
    if (status < 400 && !log.detailed) return;
    const fields = {
      requestId: state.requestId,
      ...(state.traceId === undefined ? {} : { traceId: state.traceId }),
      method: context.method.slice(0, 32),
      path: context.path.slice(0, 256),
      status,
      ...(state.errorCode === undefined ? {} : { errorCode: state.errorCode }),
      ...(state.caller
        ? { keyId: state.caller.keyId, team: state.caller.team, user: state.caller.user }
        : {}),
      durationMs: Math.round(tookMs),
    };
    if (status >= 500) log.warn(fields, 'request');
    else if (status >= 400) log.info(fields, 'request');
    else log.debug(fields, 'request');
  };

/**
 * Refuses what must not reach a route: requests without a Host, and all of them once the daemon
 * stops.
 */
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
