import type { Answer } from '../../http/corridor/route.ts';
import { namedByQuery } from '../../http/corridor/stages/named-cluster.ts';
import { actorNameKind, separatorOf } from '../../http/corridor/local-names.ts';

/**
 * Prefixes ids and pool names with their cluster, and leads endpoint URLs through the manager. A
 * tenant's data, such as metadata, stays. A prefixed name gets the prefix too, so a worker cannot
 * name another cluster's resources.
 */
const inFleet = (body: object, terms: ShownTerms): object => {
  const { clusterId } = terms;
  const view: Record<string, unknown> = { ...body };
  named(view, clusterId);
  if (Array.isArray(view['items']))
    view['items'] = view['items'].map((item: unknown) =>
      isObject(item) ? itemInFleet(clusterId, item) : item,
    );
  if (isObject(view['detail'])) view['detail'] = detailIn(clusterId, view['detail']);
  if (isObject(view['sandbox'])) view['sandbox'] = shownIn(view['sandbox'], terms);
  if (isObject(view['template']) && typeof view['template']['name'] === 'string')
    view['template'] = { ...view['template'], name: poolIn(clusterId, view['template']['name']) };
  return view;
};

const MERGED_ROWS = [
  'listSandboxes',
  'listPools',
  'getSandboxStatistics',
  'getQuotas',
  'getQuotasOf',
  'listAudit',
  'listActors',
  'followEvents',
] as const;

export type MergedRow = (typeof MERGED_ROWS)[number];

const MERGED: ReadonlySet<string> = new Set(MERGED_ROWS);

/** Queries that name one cluster have no limit on the offset. */
const PAGED: ReadonlySet<string> = new Set<MergedRow>(['listSandboxes', 'listPools']);

/** A list of one pool goes to the pool's cluster. */
export const isMerged = (
  { operationId }: { readonly operationId: string },
  { query: asked }: { readonly query: unknown },
): boolean => {
  if (PAGED.has(operationId) && namedByQuery(asked) !== undefined) return false;
  const query = asked as Readonly<Record<string, unknown>> | undefined;
  return MERGED.has(operationId) && POOLS.every((name) => query?.[name] === undefined);
};

const POOLS = ['poolName', 'template'] as const;

export const shownInFleet = (
  { path }: { readonly path: string },
  body: object,
  terms: ShownTerms,
): object => {
  if (path.startsWith('/debug/actors/')) return actorInFleet(terms.clusterId, body);
  return showsNames(path) ? inFleet(body, terms) : body;
};

export interface ShownTerms {
  readonly clusterId: string;
  /** URL of this API from the client's side. */
  readonly base: () => string;
  /** Own endpoint URLs may lead to this machine. */
  readonly isOwn?: true;
}

export const actorInFleet = (clusterId: string, actor: object): object => {
  const { kind, key, name } = actor as Readonly<Record<string, unknown>>;
  if (typeof key !== 'string' || typeof name !== 'string') return actor;
  const prefix = clusterId + separatorOf(actorNameKind(kind));
  return { ...actor, key: prefix + key, name: prefix + name };
};

const showsNames = (path: string): boolean =>
  /^\/sandbox(?:es|pools)(?:\/|$)/.test(path) && !hasOwnContent(path);

/** Content of a sandbox is not rewritten. */
export const hasOwnContent = (path: string): boolean =>
  /\/(?:exec|processes|files)(?:\/|$)/.test(path);

export const itemInFleet = (clusterId: string, item: object): object => {
  const view: Record<string, unknown> = { ...item };
  if (!named(view, clusterId) && isObject(view['spec']) && typeof view['name'] === 'string')
    view['name'] = poolIn(clusterId, view['name']);
  return view;
};

/** Other clusters' endpoints always lead through the manager. */
const shownIn = (
  sandbox: Readonly<Record<string, unknown>>,
  { clusterId, base, isOwn }: ShownTerms,
) => {
  const view: Record<string, unknown> = { ...sandbox };
  const bare = sandbox['sandboxId'];
  named(view, clusterId);
  if (isObject(view['endpoints']) && typeof bare === 'string')
    view['endpoints'] = Object.fromEntries(
      Object.entries(view['endpoints']).map(([name, url]) => [
        name,
        !isOwn || (typeof url === 'string' && url.includes(`/sandboxes/${bare}/endpoints/`))
          ? `${base()}/sandboxes/${clusterId}.${bare}/endpoints/${encodeURIComponent(name)}/`
          : url,
      ]),
    );
  return view;
};

const detailIn = (clusterId: string, detail: Readonly<Record<string, unknown>>): object => {
  const view: Record<string, unknown> = { ...detail };
  named(view, clusterId);
  if (isObject(view['action'])) {
    const action: Record<string, unknown> = { ...view['action'] };
    named(action, clusterId);
    view['action'] = action;
  }
  if (Array.isArray(view['availablePools']))
    view['availablePools'] = view['availablePools'].map((pool: unknown) =>
      isObject(pool) && typeof pool['name'] === 'string'
        ? { ...pool, name: poolIn(clusterId, pool['name']) }
        : pool,
    );
  return view;
};

/** Returns whether the object has a sandbox id. */
const named = (view: Record<string, unknown>, clusterId: string): boolean => {
  const { sandboxId, poolName } = view;
  if (typeof poolName === 'string') view['poolName'] = poolIn(clusterId, poolName);
  if (typeof sandboxId !== 'string') return false;
  view['sandboxId'] = `${clusterId}.${sandboxId}`;
  return true;
};

const poolIn = (clusterId: string, name: string): string => `${clusterId}::${name}`;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const poolNameIn = (asked: unknown): string | undefined => {
  const { poolName } = (asked ?? {}) as { readonly poolName?: unknown };
  return typeof poolName === 'string' ? poolName : undefined;
};

export const errorCodeIn = (body: object): string | undefined =>
  'errorCode' in body && typeof body.errorCode === 'string' && ERROR_CODE.test(body.errorCode)
    ? body.errorCode
    : undefined;

/** An answer proves that the request never takes effect, unless its key is in flight. */
export const hadNoEffect = ({ status, body }: Pick<Answer, 'status' | 'body'>): boolean =>
  status >= 400 && status < 500 && errorCodeIn(body) !== 'IDEMPOTENCY_IN_FLIGHT';

const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
