import type { Caller } from '../../model/tenant.ts';
import type { Operations } from '../../operations/operations.ts';
import type { SandboxView } from '../../operations/views.ts';
import type { ListRequest, Place } from './schema.ts';

export interface ListedPage {
  readonly items: readonly SandboxView[];
  /** Where the list goes on; undefined where it ends. */
  readonly next: Place | undefined;
}

interface Found {
  readonly view: SandboxView;
  readonly its: Place;
}

/** Sandboxes that are read at once, and how often for one page. */
const READ = 200;
const MOST_READS = 50;

/**
 * Lists the caller's running sandboxes, newest claim first, from a place on. None is left out that
 * there was all the while, and none is shown twice, also where others came and went meanwhile. A
 * page of which too much would have to be read comes short, or empty, and the list goes on.
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
  const found: Found[] = [];
  let seen: Place | undefined = place;
  let offset = place?.offset ?? 0;
  let back = READ;
  for (let reads = 0; found.length <= limit; reads += 1) {
    if (reads === MOST_READS) return pageOf(found, limit, seen && { ...seen, offset });
    const { items } = await operations.listSandboxes(caller, filter, { limit: READ, offset });
    const [first] = items;
    // Some that came before have ended: others took their places.
    if (seen && offset > 0 && (!first || isBelow(first, seen))) {
      offset = Math.max(0, offset - back);
      back *= 2;
      continue;
    }
    back = READ;
    for (const [at, view] of items.entries()) {
      if (seen && !isBelow(view, seen)) continue;
      seen = { claimedAt: view.claimedAt ?? 0, id: view.id, offset: offset + at };
      if (isWanted(view, rest)) found.push({ view, its: seen });
    }
    if (items.length < READ) break;
    // The last one is read again, to be sure of what follows it.
    offset += items.length - 1;
  }
  return pageOf(found, limit, undefined);
};

const pageOf = (found: readonly Found[], limit: number, further: Place | undefined): ListedPage => {
  const shown = found.slice(0, limit);
  return {
    items: shown.map(({ view }) => view),
    next: found.length > limit ? shown.at(-1)?.its : further,
  };
};

const isBelow = ({ claimedAt = 0, id }: SandboxView, place: Place): boolean =>
  claimedAt < place.claimedAt || (claimedAt === place.claimedAt && id < place.id);

const isWanted = (
  { claimedAt = 0, paused }: SandboxView,
  { state, startedAfter = 0 }: Pick<ListRequest, 'state' | 'startedAfter'>,
): boolean => claimedAt >= startedAfter && (state?.includes(paused ? 'paused' : 'running') ?? true);
