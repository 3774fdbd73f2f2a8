import { invalidApiKey } from '../../../model/refusals.ts';
import type { Admission } from '../../limits/admission.ts';
import type { Clients } from '../../limits/clients.ts';
import { roomOf } from '../../limits/memory.ts';
import { wasCutShort } from '../../limits/prepared-answer.ts';
import { askedBase } from '../../limits/request-head.ts';
import type { Context } from '../../reply/context.ts';
import type { FollowKey } from '../../reply/event-streams.ts';
import { revisionsOf } from '../entity-tag.ts';
import { localName, nameKindOf } from '../local-names.ts';
import { readQuery } from '../query.ts';
import { ClientGone, readJsonBody, type JsonBody } from '../request-body.ts';
import type { AnyRequest, Incoming, Route } from '../route.ts';
import { streamedBody } from '../streamed-body.ts';
import { check, refuseIfStrict, unknownFieldWarning } from '../validation.ts';
import { claimOverLink } from './claim-over-link.ts';
import type { Exchange, Stage } from './exchange.ts';
import { stillAsks, type SessionFinder } from './identify.ts';

interface ReadDeps {
  readonly clients: Clients;
  readonly sessionOf?: SessionFinder;
  readonly admission: Admission;
  readonly terms: { readonly clusterId: string };
}

/**
 * Validates path, query and body. Refuses other clusters' names with CLUSTER_NOT_FOUND unless a
 * manager located them. Unknown fields get a warning, or a refusal with `?strict=true`.
 */
export const read =
  (deps: ReadDeps): Stage =>
  async (exchange, next) => {
    const { row, context, session } = exchange;
    exchange.params = exchange.isElsewhere
      ? context.params // that cluster validates them
      : row.params && paramsOf(row.params, context.params, deps.terms.clusterId);
    exchange.query = row.query
      ? check(row.query, readQuery(context.querystring, row.queryMaps))
      : undefined;
    let body: unknown;
    if (row.body) {
      const { value, bytes } = await jsonBody(deps, exchange);
      exchange.value = value;
      exchange.bytes = bytes;
      body = check(row.body, value);
      if (session) await stillAsks(session, deps, context);
      exchange.unknown = row.unknownOf?.(value) ?? [];
      refuseIfStrict(context.querystring, exchange.unknown);
    }
    warnOfUnknown(exchange);
    context.state.asked = body;
    if (row.effect?.kind === 'opened' && deps.clients.isLinked?.(context.req))
      exchange.overLink = claimOverLink(context);
    exchange.request = requestOf(deps, exchange, body);
    await next();
  };

const paramsOf = (
  params: NonNullable<Route['params']>,
  given: Record<string, string>,
  clusterId: string,
): unknown => {
  const local = { ...given };
  for (const name in params.names)
    local[name] = localName(nameKindOf(params.names[name], given), given[name] ?? '', {
      clusterId,
      field: name,
    });
  const result = params.schema.safeParse(local);
  if (!result.success) throw params.otherwise(local);
  return result.data;
};

const jsonBody = ({ admission }: ReadDeps, { row, context, caller }: Exchange): Promise<JsonBody> =>
  readJsonBody(context.req, context.res, {
    arriving: admission.arriving,
    mergePatch: row.method === 'PATCH',
    turn: (bytes) => caller && admission.parse(caller, bytes),
  });

/** Runs after validation, since a refusal already names the bad field. */
const warnOfUnknown = ({ row, context, unknown }: Exchange): void => {
  const warnings = [
    ...row.queryWarningsOf(context.querystring),
    ...unknown.map(unknownFieldWarning),
  ];
  if (warnings.length > 0) context.append('Warning', warnings);
};

const requestOf = (
  { clients, admission, terms: { clusterId } }: ReadDeps,
  { row, context, caller, session, params, query, overLink }: Exchange,
  body: unknown,
): AnyRequest => ({
  caller,
  session,
  params,
  query,
  body,
  keyed: undefined,
  step: context.state.step,
  waitMs: overLink.waitMs,
  signal: () => abortOf(context, caller && ((ended) => clients.followKey(caller, ended))),
  room: roomOf(context.res, admission.answers, caller),
  localPool: (poolName) => localName('pool', poolName, { clusterId, field: 'poolName' }),
  incoming: incomingOf(row, context, clients),
});

const incomingOf = (row: Route, context: Context, clients: Clients): Incoming => ({
  base: () => clients.base(context.req) + askedBase(context.path),
  content: () => streamedBody(context.req, context.res),
  ifMatch:
    (row.method === 'PUT' || row.method === 'PATCH') && row.versioned
      ? revisionsOf(context.req.headers['if-match'])
      : undefined,
  header: (name) => {
    const value = context.req.headers[name];
    return typeof value === 'string' ? value : undefined;
  },
  accepts: (first, ...others) => {
    const liked = context.accepts(first, ...others);
    return typeof liked === 'string' ? liked : first;
  },
});

const abortOf = ({ res }: Context, followKey: FollowKey | undefined): AbortSignal => {
  const controller = new AbortController();
  const gone = (): void => {
    controller.abort(new ClientGone('the client left'));
  };
  if (res.destroyed) {
    gone();
    return controller.signal;
  }
  const forgetKey = followKey?.(() => {
    controller.abort(invalidApiKey());
  });
  res.once('close', () => {
    forgetKey?.();
    if (!res.writableFinished || wasCutShort(res)) gone();
  });
  return controller.signal;
};
