import Router from '@koa/router';
import { adminRequired, Refusal } from '../model/refusals.ts';
import type { Caller } from '../model/tenant.ts';
import type { Operations } from '../operations/operations.ts';
import type { Context, RequestState } from './context.ts';
import { readQuery } from './query.ts';
import { readJsonBody } from './request-body.ts';
import type { Deprecation, Route } from './route.ts';
import { unknownFieldWarnings } from './unknown-fields.ts';
import { check } from './validation.ts';

/** What may stand before a path: the API is the same under each. */
const BASES = ['', '/v1'] as const;

/** The middleware that finds a request's row, and takes it through it: key, path, query, body, operation, answer. */
export const routerOf = (routes: readonly Route[], operations: Operations) => {
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  for (const row of routes) {
    const warningsOf = row.body && unknownFieldWarnings(row.body);
    const served: ServedRoute = { ...row, ...(warningsOf ? { warningsOf } : {}) };
    const pattern = row.path.replaceAll(/\{(\w+)\}/g, ':$1');
    for (const base of BASES) {
      router.register(base + pattern, [row.method], (context: Context & { params: Record<string, string> }) => answerRow(served, operations, context));
    }
  }
  return router.routes();
};

/** What no row answered: 405 where the path has other methods, else 404. */
export const nothingMatched = (context: Context & { matched?: readonly { readonly methods: readonly string[] }[] }): never => {
  const allowed = new Set((context.matched ?? []).flatMap((layer) => layer.methods));
  if (allowed.size === 0) throw new Refusal('NOT_FOUND', 'there is nothing at this path');
  context.set('Allow', [...allowed].join(', '));
  throw new Refusal('METHOD_NOT_ALLOWED', `${context.method.slice(0, 32)} is not possible here`);
};

/** A row with what it says of fields that its body does not have. */
interface ServedRoute extends Route { readonly warningsOf?: (body: unknown) => readonly string[] }

const answerRow = async (row: ServedRoute, operations: Operations, context: Context & { params: Record<string, string> }): Promise<void> => {
  context.state.route = row.path;
  if (row.deprecated) announceDeprecation(row.deprecated, context);
  const caller = row.access === 'open' ? undefined : authorize(row, operations, context);
  const params = row.params ? paramsOf(row.params, context.params) : undefined;
  const query = row.query ? check(row.query, readQuery(context.querystring)) : undefined;
  const body = row.body ? check(row.body, await bodyOf(row, context)) : undefined;
  const answer = await row.handle({ caller, params, query, body, signal: () => abortOf(context) });
  context.status = answer.status;
  for (const name in answer.headers) context.set(name, answer.headers[name] ?? '');
  context.set('Content-Type', 'application/json; charset=utf-8');
  context.body = JSON.stringify(answer.body);
};

const bodyOf = async ({ warningsOf }: ServedRoute, context: Context): Promise<unknown> => {
  const body = await readJsonBody(context.req, context.res);
  const warnings = warningsOf?.(body) ?? [];
  if (warnings.length > 0) context.set('Warning', [...warnings]);
  return body;
};

const authorize = (row: Route, operations: Operations, context: Context): Caller => {
  const key = context.req.headers['service-api-key'];
  const caller = operations.authenticate(typeof key === 'string' ? key : undefined);
  context.state.caller = caller;
  if (row.access === 'admin' && caller.role !== 'admin') throw adminRequired();
  return caller;
};

const paramsOf = (params: NonNullable<Route['params']>, given: Record<string, string>): unknown => {
  const result = params.schema.safeParse(given);
  if (!result.success) throw params.otherwise();
  return result.data;
};

const announceDeprecation = ({ since, successor }: Deprecation, context: Context & { params: Record<string, string> }): void => {
  const link = successor.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(context.params[name] ?? ''));
  context.set('Deprecation', `@${since}`);
  context.set('Link', `<${link}>; rel="successor-version"`);
};

const abortOf = ({ res }: Context): AbortSignal => {
  const controller = new AbortController();
  if (res.destroyed) controller.abort();
  else res.once('close', () => { if (!res.writableFinished) controller.abort(); });
  return controller.signal;
};
