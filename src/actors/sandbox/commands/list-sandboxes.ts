import type { LiveFilter } from '../live-lists.ts';
import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { History } from '../../../contracts/history.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { SandboxFilter, SandboxOperations } from './sandbox-operations.ts';
import { viewOf, viewOfFinished } from '../sandbox-snapshot.ts';
import type { Page, PageRequest, SandboxView } from '../../views.ts';

export interface ListSandboxesDeps {
  readonly supervisor: Supervisor;
  readonly history: History;
  readonly clock: Clock;
  /** In ms. */
  readonly listWindowMs: number;
}

interface Scope {
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
}

/**
 * Newest claim first (operation `GET /sandboxes`). Without a phase: claimed sandboxes, and those
 * finished within the window. With metadata: only live ones. Totals are exact.
 */
export const listSandboxes =
  (deps: ListSandboxesDeps): SandboxOperations['listSandboxes'] =>
  async (caller, filter, page) => {
    const scope = scopeOf(caller, filter);
    const { poolName } = filter;
    const byPool = poolName === undefined ? {} : { poolName };
    const live = { ...scope, ...livePool(deps, scope, poolName) };
    const { offset, limit } = page;
    const { phase, metadata } = filter;
    if (metadata && phase === 'Completed')
      throw invalidArgument('phase', 'finished sandboxes cannot be found by their metadata');
    if (metadata || (phase !== undefined && phase !== 'Completed')) {
      const { ids, total } = deps.supervisor.index.list(
        { ...live, phase, metadata },
        offset,
        limit,
      );
      return { items: liveViews(deps, ids), total, limit, offset };
    }
    const finishedFilter = { ...scope, ...byPool, since: deps.clock.now() - deps.listWindowMs };
    if (phase === 'Completed') {
      const finished = await deps.history.list(finishedFilter, page);
      return { items: finished.items.map(viewOfFinished), total: finished.total, limit, offset };
    }
    return await merged(deps, { live, finished: finishedFilter }, page);
  };

/**
 * By the pool that has the name now, not a deleted one. By name if there is no such pool, or
 * without a namespace.
 */
const livePool = (
  { supervisor }: ListSandboxesDeps,
  { namespace }: Scope,
  poolName: string | undefined,
): { readonly poolName?: string; readonly poolUid?: string } => {
  if (poolName === undefined) return {};
  const poolUid =
    namespace === undefined ? undefined : supervisor.pools.index.uidOf(namespace, poolName);
  return poolUid === undefined ? { poolName } : { poolUid };
};

/** Deep pages mostly need only one of the lists. */
const merged = async (
  deps: ListSandboxesDeps,
  filters: Filters,
  page: PageRequest,
): Promise<Page<SandboxView>> => {
  const liveCount = deps.supervisor.index.list(filters.live, 0, 0).total;
  if (page.offset >= liveCount)
    return (
      (await belowLiveOnes(deps, filters, { page, liveCount })) ??
      (await mixed(deps, filters, { page, liveCount }))
    );
  if (page.offset >= LEAST_LOOKED)
    return (
      (await amongLiveOnes(deps, filters, { page, liveCount })) ??
      (await mixed(deps, filters, { page, liveCount }))
    );
  return await mixed(deps, filters, { page, liveCount });
};

interface Filters {
  readonly live: LiveFilter;
  readonly finished: Scope & { readonly since: number };
}

/** Below this offset, `merged` reads both lists at once. */
const LEAST_LOOKED = 200;

/** Undefined unless all live sandboxes are newer than the page. */
const belowLiveOnes = async (
  { supervisor, history }: ListSandboxesDeps,
  filters: Filters,
  {
    page: { offset, limit },
    liveCount,
  }: { readonly page: PageRequest; readonly liveCount: number },
): Promise<Page<SandboxView> | undefined> => {
  const { items, total } = await history.list(filters.finished, {
    offset: offset - liveCount,
    limit,
  });
  const [first] = items;
  if (
    first &&
    supervisor.index.newerThan(filters.live, { at: first.claimedAt, id: first.id }) !== liveCount
  )
    return undefined;
  return { items: items.map(viewOfFinished), total: liveCount + total, limit, offset };
};

/** Undefined unless all finished sandboxes are older than the page. */
const amongLiveOnes = async (
  deps: ListSandboxesDeps,
  filters: Filters,
  {
    page: { offset, limit },
    liveCount,
  }: { readonly page: PageRequest; readonly liveCount: number },
): Promise<Page<SandboxView> | undefined> => {
  const {
    items: [newest],
    total,
  } = await deps.history.list(filters.finished, { offset: 0, limit: 1 });
  const views = liveViews(deps, deps.supervisor.index.list(filters.live, offset, limit).ids);
  const last = views.at(-1);
  if (!last || views.length < limit || (newest && newestFirst(last, viewOfFinished(newest)) > 0))
    return undefined;
  return { items: views, total: liveCount + total, limit, offset };
};

/**
 * Reads only finished ones that can be on the page; the live ones bound how many come before it.
 */
const mixed = async (
  deps: ListSandboxesDeps,
  filters: Filters,
  {
    page: { offset, limit },
    liveCount,
  }: { readonly page: PageRequest; readonly liveCount: number },
): Promise<Page<SandboxView>> => {
  const skipped = Math.max(0, offset - liveCount);
  const finished = await deps.history.list(filters.finished, {
    offset: skipped,
    limit: offset - skipped + limit,
  });
  const live = liveViews(deps, deps.supervisor.index.list(filters.live, 0, offset + limit).ids);
  const seen = new Set(live.map((view) => view.id));
  const ended = finished.items.filter((item) => !seen.has(item.id)).map(viewOfFinished);
  // Skipped sandboxes precede every live one that could displace them, so they take the page's
  // first places.
  const items = [...live, ...ended]
    .sort(newestFirst)
    .slice(offset - skipped, offset - skipped + limit);
  const inBoth = finished.items.length - ended.length; // their records are about to be removed
  return { items, total: liveCount + finished.total - inBoth, limit, offset };
};

const newestFirst = (a: SandboxView, b: SandboxView): number =>
  (b.claimedAt ?? 0) - (a.claimedAt ?? 0) || (a.id < b.id ? 1 : -1);

const liveViews = (
  { supervisor, clock }: ListSandboxesDeps,
  ids: readonly string[],
): SandboxView[] =>
  ids.flatMap((id) => {
    const snapshot = supervisor.sandbox(id);
    return snapshot ? [viewOf(snapshot, clock.now())] : [];
  });

const scopeOf = (caller: Caller, filter: SandboxFilter): Scope => {
  const named =
    filter.namespace !== undefined || filter.team !== undefined || filter.user !== undefined;
  if (caller.role !== 'admin' || (!filter.all && !named))
    return { namespace: caller.namespace, team: caller.team, user: caller.user };
  return { namespace: filter.namespace, team: filter.team, user: filter.user };
};
