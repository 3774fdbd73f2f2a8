import type { Answer } from '../../http/corridor/route.ts';
import { namedByQuery } from '../../http/corridor/stages/named-cluster.ts';
import { actorNameKind, separatorOf } from '../../http/corridor/local-names.ts';

/**
 * Rewrites a worker's answer: sandbox ids and pool names get their cluster as a prefix, and
 * endpoint URLs lead through the manager. Only fields of the API are rewritten; a tenant's data,
 * such as metadata, stays. A worker's name that already has a prefix gets the worker's prefix too,
 * so a worker cannot name another cluster's resources.
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

/** Operations that a manager answers from all clusters. */
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

/** Lists that go to one cluster if the query names it, without a limit on the offset. */
const PAGED: ReadonlySet<string> = new Set<MergedRow>(['listSandboxes', 'listPools']);

/**
 * Returns whether a request goes to all clusters. A list of one pool goes to the pool's cluster.
 */
export const isMerged = (
  { operationId }: { readonly operationId: string },
  { query: asked }: { readonly query: unknown },
): boolean => {
  if (PAGED.has(operationId) && namedByQuery(asked) !== undefined) return false;
  const query = asked as Readonly<Record<string, unknown>> | undefined;
  return MERGED.has(operationId) && POOLS.every((name) => query?.[name] === undefined);
};

/** Query parameters that name a pool. */
const POOLS = ['poolName', 'template'] as const;

/** Rewrites a cluster's answer to a request of this row to fleet names. */
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
  /** Returns the URL of this API from the client's side. */
  readonly base: () => string;
  /** Set for the manager's own cluster, whose endpoint URLs may lead to this machine. */
  readonly isOwn?: true;
}

/** Returns an actor with fleet names. */
export const actorInFleet = (clusterId: string, actor: object): object => {
  const { kind, key, name } = actor as Readonly<Record<string, unknown>>;
  if (typeof key !== 'string' || typeof name !== 'string') return actor;
  const prefix = clusterId + separatorOf(actorNameKind(kind));
  return { ...actor, key: prefix + key, name: prefix + name };
};

const showsNames = (path: string): boolean =>
  /^\/sandbox(?:es|pools)(?:\/|$)/.test(path) && !hasOwnContent(path);

/**
 * Returns whether a row answers with content of a sandbox. Such content has no names to rewrite.
 */
export const hasOwnContent = (path: string): boolean =>
  /\/(?:exec|processes|files)(?:\/|$)/.test(path);

/** Returns a sandbox or pool of a list with fleet names. */
export const itemInFleet = (clusterId: string, item: object): object => {
  const view: Record<string, unknown> = { ...item };
  if (!named(view, clusterId) && isObject(view['spec']) && typeof view['name'] === 'string')
    view['name'] = poolIn(clusterId, view['name']);
  return view;
};

/**
 * Returns a sandbox with fleet names. Endpoints of other clusters always lead through the manager.
 */
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

/** Returns the detail of a refusal with fleet names. */
const detailIn = (clusterId: string, detail: Readonly<Record<string, unknown>>): object => {
  const view: Record<string, unknown> = { ...detail };
  named(view, clusterId);
  if (Array.isArray(view['availablePools']))
    view['availablePools'] = view['availablePools'].map((pool: unknown) =>
      isObject(pool) && typeof pool['name'] === 'string'
        ? { ...pool, name: poolIn(clusterId, pool['name']) }
        : pool,
    );
  return view;
};

/** Rewrites ids and pool names in place. Returns whether the object has a sandbox id. */
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

/** Returns the `poolName` of a body or a query. */
export const poolNameIn = (asked: unknown): string | undefined => {
  const { poolName } = (asked ?? {}) as { readonly poolName?: unknown };
  return typeof poolName === 'string' ? poolName : undefined;
};

export const errorCodeIn = (body: object): string | undefined =>
  'errorCode' in body && typeof body.errorCode === 'string' && ERROR_CODE.test(body.errorCode)
    ? body.errorCode
    : undefined;

/**
 * Returns whether an answer proves that the request had no effect and never will. A request whose
 * key is in flight may still have one.
 */
export const hadNoEffect = ({ status, body }: Pick<Answer, 'status' | 'body'>): boolean =>
  status >= 400 && status < 500 && errorCodeIn(body) !== 'IDEMPOTENCY_IN_FLIGHT';

/** Form of a worker's error code, which goes to the log. */
const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
