import {
  contradicts,
  type FinishedFilter,
  type GroupKey,
  type History,
} from '../contracts/history.ts';
import type { Log } from '../contracts/log.ts';
import { Retention, type RetentionOptions } from '../contracts/retention.ts';
import type { EventRecord } from '../model/event.ts';
import type { InstanceId } from '../model/identifiers.ts';
import { unavailable } from '../model/refusals.ts';
import type { FinishedSandbox } from '../model/sandbox.ts';
import { MOST_DECISIONS, type CompletedDecision } from '../model/envs/scaling-decision.ts';
import { tenantKey } from '../model/tenant.ts';
import { keysOf } from './keys.ts';
import { HistoryRoom } from './history-room.ts';
import { RedisLink } from './redis-link.ts';
import type { RedisSettings } from './settings.ts';

export interface RedisHistoryOptions extends RetentionOptions {
  readonly settings: RedisSettings;
  readonly log: Log;
}

/** Per sandbox, and per pool. */
const MOST_EVENTS = 50;
/** Per owner, with events. */
const MOST_POOLS = 100;
/** From the last event, if the sandbox or pool is not known to have ended. */
const UNFINISHED_MS = 90 * 86_400_000;
/** Block Redis for a millisecond or two. */
const STEP_ENTRIES = 1_000;
const STEP_BODIES = 250;
const MOST_STEPS = 2_000;
const SWEEP_ROWS = 100;
const STEP_GROUPS = 1_000;
const EVER = '-inf';

/**
 * Sorted sets for each kind of filter, totals from their sizes, pages read in small steps. From
 * `start()` on, deletes old and excess records.
 */
export class RedisHistory implements History {
  readonly #link: RedisLink;
  readonly #key: string;
  readonly #options: RedisHistoryOptions;
  readonly #retention: Retention;
  readonly #room: HistoryRoom;

  constructor(options: RedisHistoryOptions) {
    this.#options = options;
    this.#key = keysOf(options.settings.prefix).history;
    this.#retention = new Retention(options, {
      trim: async ({ tenantBytes, totalBytes }) =>
        Number(
          (await this.#link.run('trim', [this.#key], [tenantBytes, totalBytes, SWEEP_ROWS]))[1],
        ),
      forget: async (before) =>
        Number((await this.#link.run('forget', [this.#key], [before, SWEEP_ROWS]))[1]) > 0,
      failed: (error) => {
        options.log.debug({ error }, 'history-not-deleted');
      },
    });
    this.#link = new RedisLink({
      settings: options.settings,
      log: options.log,
      metrics: options.metrics,
      name: 'history',
    });
    this.#room = new HistoryRoom({
      ...options,
      makeRoom: async (share, most) => {
        const [, forgotten, used] = await this.#link.run('make_room', [this.#key], [share, most]);
        return { forgotten: Number(forgotten), used: Number(used) };
      },
    });
  }

  /** Never rejects: calls report a missing Redis. */
  async start(): Promise<void> {
    await this.#link.start();
    this.#retention.start();
    this.#room.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#retention.stop(), this.#room.stop()]);
    this.#link.stop();
  }

  async record(finished: FinishedSandbox): Promise<void> {
    const { id, owner, poolName, claimedAt, terminatedAt } = finished;
    await this.#link.run(
      'record',
      [this.#key],
      [
        id,
        JSON.stringify(finished),
        `${tenantKey(owner)}/${poolName}`,
        claimedAt,
        terminatedAt,
        this.#options.retentionMs,
      ],
    );
    this.#room.recorded();
    this.#retention.recorded();
  }

  async find(id: InstanceId): Promise<FinishedSandbox | undefined> {
    const [answer, entry] = await this.#link.run('find', [this.#key], [id]);
    return answer === 'ok' ? finishedOf(entry) : undefined;
  }

  async recordEvents(
    events: readonly { readonly id: number; readonly event: EventRecord }[],
  ): Promise<void> {
    const parts = events.flatMap(({ id, event }) =>
      event.sandboxId === undefined ? [] : [event.sandboxId, id, JSON.stringify(event)],
    );
    if (parts.length > 0)
      await this.#link.run(
        'record_events',
        [this.#key],
        [MOST_EVENTS, UNFINISHED_MS, this.#options.retentionMs, ...parts],
      );
    await this.#recordPoolEvents(events.filter(({ event }) => event.sandboxId === undefined));
  }

  async #recordPoolEvents(
    events: readonly { readonly id: number; readonly event: EventRecord }[],
  ): Promise<void> {
    if (events.length === 0) return;
    const { retentionMs } = this.#options;
    await this.#link.run(
      'record_pool_events',
      [this.#key],
      [
        MOST_EVENTS,
        MOST_POOLS,
        UNFINISHED_MS,
        ...events.flatMap(({ id, event }) => [
          tenantKey(event.owner),
          `${event.owner.namespace}/${event.poolName}`,
          id,
          event.reason === 'Deleted' ? retentionMs : UNFINISHED_MS,
          JSON.stringify(event),
        ]),
      ],
    );
  }

  async eventsOfPool(namespace: string, name: string): Promise<readonly EventRecord[]> {
    const [, ...events] = await this.#link.run(
      'events_of_pool',
      [this.#key],
      [`${namespace}/${name}`],
    );
    return events.map((event) => JSON.parse(String(event).replace(/^\d+\|/, '')) as EventRecord);
  }

  async eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]> {
    const [, ...events] = await this.#link.run('events_of', [this.#key], [sandboxId]);
    return events.map((event) => JSON.parse(String(event).replace(/^\d+\|/, '')) as EventRecord);
  }

  async recordDecision({ envUid, group }: GroupKey, decision: CompletedDecision): Promise<void> {
    await this.#link.run(
      'record_decision',
      [this.#key],
      [
        `${envUid}/${group}`,
        decision.id,
        JSON.stringify(decision),
        MOST_DECISIONS,
        this.#options.retentionMs,
      ],
    );
  }

  async decisionsOf({ envUid, group }: GroupKey): Promise<readonly CompletedDecision[]> {
    const [, ...decisions] = await this.#link.run(
      'decisions_of',
      [this.#key],
      [`${envUid}/${group}`],
    );
    return decisions.map((decision) => JSON.parse(String(decision)) as CompletedDecision);
  }

  async countByNamespace(): Promise<ReadonlyMap<string, number>> {
    const found = new Set<string>();
    for await (const { name } of this.#groups(EVER, ''))
      found.add(name.slice(0, name.indexOf('/')));
    const namespaces = [...found].toSorted();
    const counted = new Map<string, number>();
    for (let from = 0; from < namespaces.length; from += STEP_GROUPS) {
      const some = namespaces.slice(from, from + STEP_GROUPS);
      const [, ...counts] = await this.#link.run('count_by_namespace', [this.#key], some);
      some.forEach((namespace, n) => {
        if (Number(counts[n]) > 0) counted.set(namespace, Number(counts[n]));
      });
    }
    return counted;
  }

  warnings(): readonly string[] {
    return this.#room.warnings();
  }

  async list(
    filter: FinishedFilter,
    { offset, limit }: Page,
  ): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }> {
    if (contradicts(filter)) return { items: [], total: 0 };
    const since = filter.since ?? EVER;
    const { level, group, pattern } = indexOf(filter);
    if (pattern !== undefined)
      return await this.#listMatching({ level, since, pattern }, { offset, limit });
    const [answer, counted, newer, exact] = await this.#link.run(
      'total',
      [this.#key],
      [since, level, group ?? ''],
    );
    const total = answer === 'none' ? 0 : Number(counted);
    if (offset >= total || limit === 0) return { items: [], total };
    // Claims since then also ended since then, so their rank excludes them.
    const rank = Math.min(offset, Number(newer));
    const items = await this.#walk(
      { level: String(exact), since, groups: [], rank },
      { skip: offset - rank, limit: Math.min(limit, total - offset) },
    );
    return { items, total };
  }

  /** If no index has exactly the matches. */
  async #listMatching(
    { level, since, pattern }: Matching,
    { offset, limit }: Page,
  ): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }> {
    const counts = new Map<string, number>();
    for await (const { group, count } of this.#groups(since, pattern)) counts.set(group, count);
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    if (offset >= total || limit === 0) return { items: [], total };
    const items = await this.#walk(
      { level, since, groups: [...counts.keys()], rank: 0 },
      { skip: offset, limit: Math.min(limit, total - offset) },
    );
    return { items, total };
  }

  /** A group may appear twice. */
  async *#groups(
    since: number | string,
    pattern: string,
  ): AsyncGenerator<{ readonly group: string; readonly name: string; readonly count: number }> {
    let cursor = '0';
    do {
      const [, next, ...found] = await this.#link.run(
        'match_groups',
        [this.#key],
        [cursor, STEP_GROUPS, since, pattern],
      );
      cursor = String(next);
      for (let i = 0; i < found.length; i += 3)
        yield { group: String(found[i]), name: String(found[i + 1]), count: Number(found[i + 2]) };
    } while (cursor !== '0');
  }

  /** In steps of bounded cost, so that other calls run in between. */
  async #walk(
    { level, since, groups, rank }: Walk,
    { skip, limit }: { readonly skip: number; readonly limit: number },
  ): Promise<readonly FinishedSandbox[]> {
    const items: FinishedSandbox[] = [];
    let last = '';
    let left = skip;
    for (let step = 0; step < MOST_STEPS && items.length < limit; step++) {
      const wanted = Math.min(limit - items.length, STEP_BODIES);
      const [answer, seen, matched, lastSeen, ...entries] = await this.#link.run(
        'walk',
        [this.#key],
        [level, last, rank, since === EVER ? 0 : since, STEP_ENTRIES, left, wanted, ...groups],
      );
      if (answer === 'lost') throw unavailable('the list changed while it was read; try again');
      items.push(...entries.map(finishedOf));
      left = Math.max(0, left - Number(matched));
      if (Number(seen) === 0) break;
      last = String(lastSeen);
    }
    return items;
  }
}

interface Page {
  readonly offset: number;
  readonly limit: number;
}
interface Walk {
  readonly level: string;
  readonly since: number | string;
  readonly groups: readonly string[];
  readonly rank: number;
}

interface Matching {
  readonly level: string;
  readonly since: number | string;
  readonly pattern: string;
}

/**
 * The smallest index with all matches. `group`: it has only one owner's pool. `pattern`: matching
 * groups have names of this Lua pattern.
 */
const indexOf = (
  filter: FinishedFilter,
): { readonly level: string; readonly group?: string; readonly pattern?: string } => {
  const { namespace, team, user } = filter.owner ?? filter;
  const { poolName } = filter;
  const isOwner = namespace !== undefined && team !== undefined && user !== undefined;
  if (isOwner && poolName !== undefined)
    return { level: '', group: `${namespace}/${team}/${user}/${poolName}` };
  if (isOwner) return { level: `:owner:${namespace}/${team}/${user}` };
  const level = namespace === undefined ? ':all' : `:namespace:${namespace}`;
  if (team === undefined && user === undefined && poolName === undefined) return { level };
  const parts = [namespace, team, user, poolName].map((part) =>
    part === undefined ? '[^/]*' : part.replaceAll(/[^a-zA-Z0-9]/g, '%$&'),
  );
  return { level, pattern: `^${parts.join('/')}$` };
};

/** `group|claimed|ended|JSON`. */
const finishedOf = (entry: unknown): FinishedSandbox =>
  JSON.parse(String(entry).replace(/^\d+\|\d+\|\d+\|/, '')) as FinishedSandbox;
