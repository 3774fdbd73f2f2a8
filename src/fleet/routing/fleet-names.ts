import { namedByQuery } from '../../http/corridor/stages/named-cluster.ts';
import { actorNameKind, separatorOf } from '../../http/corridor/local-names.ts';

/**
 * Shows a worker's answer as the fleet's: a sandbox's id and a pool's name get their cluster before
 * them, and its endpoints lead over the manager. Looks where the API has names, and nowhere below:
 * what a tenant wrote, such as metadata, stays as it is. A cluster that names another gets its own
 * name before that too, so that it speaks for itself alone.
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

/** The rows that a manager answers from all clusters. */
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

/** The lists that one cluster alone answers whole, however deep a page lies. */
const PAGED: ReadonlySet<string> = new Set<MergedRow>(['listSandboxes', 'listPools']);

/** A list of one pool is that of the pool's cluster; a page of one cluster is that cluster's. */
export const isMerged = (
  { operationId }: { readonly operationId: string },
  { query: asked }: { readonly query: unknown },
): boolean => {
  if (PAGED.has(operationId) && namedByQuery(asked) !== undefined) return false;
  const query = asked as Readonly<Record<string, unknown>> | undefined;
  return MERGED.has(operationId) && POOLS.every((name) => query?.[name] === undefined);
};

/** Names by which the rows of an API ask for what is in one pool. */
const POOLS = ['poolName', 'template'] as const;

/** Shows the answer of a cluster to a request of this row as the fleet's. */
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
  /** Returns the URL of this API as the client knows it. */
  readonly base: () => string;
  /** It is the manager's own, whose addresses of endpoints may be this machine's. */
  readonly isOwn?: true;
}

/** An actor, by names that lead to it over the manager. */
export const actorInFleet = (clusterId: string, actor: object): object => {
  const { kind, key, name } = actor as Readonly<Record<string, unknown>>;
  if (typeof key !== 'string' || typeof name !== 'string') return actor;
  const prefix = clusterId + separatorOf(actorNameKind(kind));
  return { ...actor, key: prefix + key, name: prefix + name };
};

/** Whether answers of a row show sandboxes or pools. */
const showsNames = (path: string): boolean =>
  /^\/sandbox(?:es|pools)(?:\/|$)/.test(path) && !hasOwnContent(path);

/** Whether a row answers what a sandbox holds or prints, in which there are no names. */
export const hasOwnContent = (path: string): boolean =>
  /\/(?:exec|processes|files)(?:\/|$)/.test(path);

/** One item of a list, of sandboxes or of pools. */
export const itemInFleet = (clusterId: string, item: object): object => {
  const view: Record<string, unknown> = { ...item };
  if (!named(view, clusterId) && isObject(view['spec']) && typeof view['name'] === 'string')
    view['name'] = poolIn(clusterId, view['name']);
  return view;
};

/** Endpoints of other clusters lead over the manager, whatever address they have there. */
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

/** The detail of a refusal. */
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

/** Whether it has a sandbox's id. */
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

export const errorCodeIn = (body: object): string | undefined =>
  'errorCode' in body && typeof body.errorCode === 'string' && ERROR_CODE.test(body.errorCode)
    ? body.errorCode
    : undefined;

/** A worker's word for one: it goes to the log. */
const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
