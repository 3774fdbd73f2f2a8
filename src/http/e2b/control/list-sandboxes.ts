import type { Caller } from '../../../model/tenant.ts';
import type { Operations } from '../../../services/operations.ts';
import type { Page, PageRequest, SandboxView } from '../../../actors/views.ts';
import type { ListRequest, Place } from './schema.ts';

export interface ListedPage {
  readonly items: readonly SandboxView[];
  readonly next: Place | undefined;
}

interface Found {
  readonly view: SandboxView;
  readonly its: Place;
}

const READ = 200;
const MOST_READS = 50;
/** Extra items per read, for sandboxes added at the front in the meantime. */
const SLACK = 100;

/**
 * Ordered by claim time. Never skips a sandbox that existed throughout, and never repeats one. A
 * page that needs too many reads is short.
 */
export const listRunning = async (
  operations: Pick<Operations, 'listSandboxes'>,
  caller: Caller,
  {
    metadata,
    limit,
    nextToken: place,
    order,
    poolName,
    ...rest
  }: ListRequest & {
    poolName?: string;
  },
): Promise<ListedPage> => {
  const filter = {
    phase: 'Running' as const,
    metadata: metadata && Object.keys(metadata).length > 0 ? metadata : undefined,
    poolName,
  };
  const list: Read = (page) => operations.listSandboxes(caller, filter, page);
  const [read, isPast] = order === 'asc' ? [fromOldest, isAbove] : [fromNewest, isBelow];
  const found: Found[] = [];
  let seen: Place | undefined = place;
  let offset = place?.offset ?? 0;
  let back = READ;
  for (let reads = 0; found.length <= limit; reads += 1) {
    if (reads === MOST_READS) return pageOf(found, limit, seen && { ...seen, offset });
    const { items, begin, isLast } = await read(list, offset);
    const [first] = items;
    // Positions have shifted: sandboxes ended or were added.
    if (begin > offset || (seen && offset > 0 && (!first || isPast(first, seen)))) {
      offset = Math.max(0, offset - back);
      back *= 2;
      continue;
    }
    back = READ;
    for (const [at, view] of items.entries()) {
      if (seen && !isPast(view, seen)) continue;
      seen = { claimedAt: view.claimedAt ?? 0, id: view.id, offset: begin + at };
      if (isWanted(view, rest)) found.push({ view, its: seen });
    }
    if (isLast) break;
    // Detects a shift.
    offset = begin + items.length - 1;
  }
  return pageOf(found, limit, undefined);
};

type Read = (page: PageRequest) => Promise<Page<SandboxView>>;

interface Listed {
  readonly items: readonly SandboxView[];
  readonly begin: number;
  readonly isLast: boolean;
}

const fromNewest = async (list: Read, begin: number): Promise<Listed> => {
  const { items } = await list({ limit: READ, offset: begin });
  return { items, begin, isLast: items.length < READ };
};

const fromOldest = async (list: Read, begin: number): Promise<Listed> => {
  const counted = await list({ limit: 1, offset: 0 });
  const offset = Math.max(0, counted.total - begin - READ);
  const { items, total } = await list({ limit: READ + SLACK, offset });
  return {
    items: items.toReversed(),
    begin: total - offset - items.length,
    isLast: offset === 0,
  };
};

const pageOf = (found: readonly Found[], limit: number, further: Place | undefined): ListedPage => {
  const shown = found.slice(0, limit);
  return {
    items: shown.map(({ view }) => view),
    next: found.length > limit ? shown.at(-1)?.its : further,
  };
};

export const isBelow = ({ claimedAt = 0, id }: Placed, place: Placed): boolean =>
  claimedAt < (place.claimedAt ?? 0) || (claimedAt === (place.claimedAt ?? 0) && id < place.id);

export const isAbove = ({ claimedAt = 0, id }: Placed, place: Placed): boolean =>
  claimedAt > (place.claimedAt ?? 0) || (claimedAt === (place.claimedAt ?? 0) && id > place.id);

type Placed = Pick<SandboxView, 'claimedAt' | 'id'>;

const isWanted = (
  { claimedAt = 0, paused }: SandboxView,
  { state, startedAfter = 0 }: Pick<ListRequest, 'state' | 'startedAfter'>,
): boolean => claimedAt >= startedAfter && (state?.includes(paused ? 'paused' : 'running') ?? true);
