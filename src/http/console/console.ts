import type { Next } from 'koa';
import { ClientGone, readForm } from '../corridor/request-body.ts';
import type { ArrivingBodies } from '../limits/memory.ts';
import type { Context } from '../reply/context.ts';
import type { Clients } from '../limits/clients.ts';
import { addressGroup } from '../limits/address-group.ts';
import { errorAnswer } from '../reply/error-table.ts';
import { methodNotAllowed } from '../corridor/nothing-matched.ts';
import type { ConsoleRoute } from './console-route.ts';
import { cookieOf, SESSION_COOKIE } from '../limits/request-head.ts';
import { html } from './html.ts';
import { loginRoutes } from './login-pages.ts';
import { givePage, HEADERS, seeOther, STYLE } from './page.ts';
import { checkCsrf, type ConsoleTerms } from './session-finder.ts';
import { sessionRoutes } from './session-pages.ts';
import { checkOrigin, siteOf } from './site.ts';

export interface ConsoleDeps extends ConsoleTerms {
  readonly clients: Clients;
  readonly arriving: ArrivingBodies;
  readonly more?: readonly ConsoleRoute[];
}

/** Serves the browser pages under `/console`. */
export const consolePages = (deps: ConsoleDeps) => {
  const routes: readonly ConsoleRoute[] = [
    STYLE_ROUTE,
    ...loginRoutes(deps),
    ...sessionRoutes(deps),
    ...(deps.more ?? []),
  ];
  return async (context: Context, next: Next): Promise<void> => {
    const { path } = context;
    if (path !== '/console' && !path.startsWith('/console/')) return next();
    try {
      await answer(deps, routes, context);
    } catch (error) {
      if (error instanceof ClientGone) throw error;
      giveError(context, error);
    }
  };
};

const answer = async (
  deps: ConsoleDeps,
  routes: readonly ConsoleRoute[],
  context: Context,
): Promise<void> => {
  const site = siteOf(context.req, deps.url);
  const method = context.method === 'HEAD' ? 'GET' : context.method;
  const here = routes.flatMap((route) => {
    const rest = restOf(route.path, context.path);
    return rest === undefined ? [] : [{ route, rest }];
  });
  const found = here.find(({ route }) => route.method === method);
  if (!found) {
    if (here.length > 0)
      return methodNotAllowed(
        context,
        here.map(({ route }) => route.method),
      );
    return notFound(context);
  }
  const { route, rest } = found;
  context.state.route = route.path;
  // login handlers write the audit, since only they know the person
  if (!route.open) context.state.operation = route.operation;
  if (method === 'POST') checkOrigin(context.req, site);
  // before the session lookup, since the session may end while a slow form arrives
  const fields =
    method === 'POST'
      ? await readForm(context.req, context.res, deps.arriving)
      : new Map<string, string>();
  const token = cookieOf(context.req, SESSION_COOKIE);
  const session = token === undefined ? undefined : await deps.people.openSession(token);
  if (!route.open) {
    if (!session) return toLogin(context, token);
    context.state.session = session.person;
    if (method === 'POST') checkCsrf(session, fields.get('csrf'));
  }
  const address = addressGroup(deps.clients.of(context.req));
  await route.handle({ context, site, session, token, fields, rest, address });
};

/**
 * A browser sends no cookie with a link from another site, so it first reloads from a page of this
 * site.
 */
const toLogin = (context: Context, token: string | undefined): void => {
  const from = context.req.headers['sec-fetch-site'];
  if (context.method === 'GET' && token === undefined && from === 'cross-site')
    return givePage(context, {
      title: 'One moment',
      body: html`<p><a href="${context.path}">Continue</a></p>`,
      goOn: context.path,
    });
  const next = context.method === 'GET' ? `?next=${encodeURIComponent(context.path)}` : '';
  seeOther(context, `/console/login${next}`);
};

const restOf = (pattern: string, path: string): string | undefined => {
  if (!pattern.endsWith('/*')) return pattern === path ? '' : undefined;
  const rest = path.startsWith(pattern.slice(0, -1)) ? path.slice(pattern.length - 1) : '';
  return /^[\w-]{1,64}$/.test(rest) ? rest : undefined;
};

const notFound = (context: Context): void =>
  givePage(context, {
    title: 'Not found',
    status: 404,
    body: html`<p>There is nothing at this address. <a href="/console">The console</a></p>`,
  });

/** Rethrows faults for logging. */
const giveError = (context: Context, error: unknown): void => {
  const { status, headers, body } = errorAnswer(error, context.state.requestId);
  if (body.errorCode === 'INTERNAL') throw error;
  context.state.errorCode = body.errorCode;
  context.set(headers);
  const hint = body.detail?.['hint'];
  givePage(context, {
    title: 'This did not work',
    status,
    body: html`<p class="error" role="alert">${body.error}</p>
      ${typeof hint === 'string' ? html`<p>${hint}</p>` : undefined}
      <p><a href="/console">Back to the console</a></p>`,
  });
};

const STYLE_ROUTE: ConsoleRoute = {
  method: 'GET',
  path: '/console/style.css',
  operation: 'getConsoleStyle',
  open: true,
  handle: ({ context }) => {
    context.set({ ...HEADERS, 'Cache-Control': 'max-age=3600' });
    context.status = 200;
    context.type = 'text/css; charset=utf-8';
    context.body = STYLE;
  },
};
