import type { Caller } from '../../model/tenant.ts';
import type { Operations } from '../../operations/operations.ts';
import type { SandboxView } from '../../operations/views.ts';
import type { ListRequest, Place } from './schema.ts';

export interface ListedPage {
  readonly items: readonly SandboxView[];
  /** Where the list goes on; undefined where it ends. */
  readonly next: Place | undefined;
}

/** Sandboxes that are read at once, and how often for one page. */
const READ = 200;
const MOST_READS = 50;

/**
 * Lists the caller's running sandboxes, newest claim first, from a place on. None is left out that
 * there was all the while, and none is shown twice, also where others came and went meanwhile.
 */
export const listRunning = async (
  operations: Pick<Operations, 'listSandboxes'>,
  caller: Caller,
  { metadata, limit, nextToken: place, poolName, ...rest }: ListRequest & { poolName?: string },
): Promise<ListedPage> => {
  const filter = {
    phase: 'Running' as const,
    ...(metadata && Object.keys(metadata).length > 0 ? { metadata } : {}),
    ...(poolName === undefined ? {} : { poolName }),
  };
  const found: { readonly view: SandboxView; readonly offset: number }[] = [];
  let offset = place?.offset ?? 0;
  for (let reads = 0; reads < MOST_READS && found.length <= limit; reads += 1) {
    const { items } = await operations.listSandboxes(caller, filter, { limit: READ, offset });
    const [first] = items;
    // Some that came before have ended: others took their places.
    if (reads === 0 && place && offset > 0 && (!first || isBelow(first, place))) {
      offset = 0;
      continue;
    }
    for (const [at, view] of items.entries())
      if ((!place || isBelow(view, place)) && isWanted(view, rest))
        found.push({ view, offset: offset + at });
    offset += items.length;
    if (items.length < READ) break;
  }
  const shown = found.slice(0, limit);
  const last = found.length > limit ? shown.at(-1) : undefined;
  return {
    items: shown.map(({ view }) => view),
    next: last && {
      claimedAt: last.view.claimedAt ?? 0,
      id: last.view.id,
      offset: last.offset,
    },
  };
};

const isBelow = ({ claimedAt = 0, id }: SandboxView, place: Place): boolean =>
  claimedAt < place.claimedAt || (claimedAt === place.claimedAt && id < place.id);

const isWanted = (
  { claimedAt = 0, paused }: SandboxView,
  { state, startedAfter = 0 }: Pick<ListRequest, 'state' | 'startedAfter'>,
): boolean => claimedAt >= startedAfter && (state?.includes(paused ? 'paused' : 'running') ?? true);
