import { contradicts, type FinishedFilter, type GroupKey, type History } from '../contracts/history.ts';
import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import { Retention, type RetentionOptions } from '../contracts/retention.ts';
import type { EventRecord } from '../model/event.ts';
import type { InstanceId } from '../model/identifiers.ts';
import { unavailable } from '../model/refusals.ts';
import type { FinishedSandbox } from '../model/sandbox.ts';
import { MOST_DECISIONS, type ToldDecision } from '../model/scaling-decision.ts';
import { tenantKey } from '../model/tenant.ts';
import { keysOf } from './keys.ts';
import { RedisLink } from './redis-link.ts';
import { COUNT_BY_NAMESPACE, DECISIONS_OF, EVENTS_OF, FIND, FORGET, RECORD, RECORD_DECISION, RECORD_EVENTS, TOTAL, WALK } from './scripts/history.ts';
import type { RedisSettings } from './settings.ts';

export interface RedisHistoryOptions extends RetentionOptions {
  readonly settings: RedisSettings;
  readonly log: Log;
  readonly metrics?: Metrics;
}

/** Events of a sandbox that are kept. */
const MOST_EVENTS = 50;
/** How long events of a sandbox are kept that is not known to have finished, from the last of them. */
const UNFINISHED_MS = 90 * 86_400_000;
/** Entries that one step of a walk looks at: a millisecond or two in which Redis does nothing else. */
const STEP_ENTRIES = 1_000;
/** Bodies that one step gives. */
const STEP_BODIES = 250;
/** Steps of one page at most. */
const MOST_STEPS = 2_000;
const SWEEP_ROWS = 100;
/** Where no moment is given: before any. */
const EVER = '-inf';

/**
 * Finished sandboxes in Redis: sorted sets for each kind of filter, totals counted from them, pages read in small steps. `start()` connects
 * and begins to forget what is older than retention; `stop()` ends both.
 */
export class RedisHistory implements History {
  readonly #link: RedisLink;
  readonly #key: string;
  readonly #options: RedisHistoryOptions;
  readonly #retention: Retention;

  constructor(options: RedisHistoryOptions) {
    this.#options = options;
    this.#key = keysOf(options.settings.prefix).history;
    this.#retention = new Retention(options, {
      forget: async (before) => Number((await this.#link.run(FORGET, [this.#key], [before, SWEEP_ROWS]))[1]) > 0,
      failed: (error) => { options.log.debug({ error }, 'history not forgotten'); },
    });
    this.#link = new RedisLink({ settings: options.settings, log: options.log, metrics: options.metrics, name: 'history', scripts: [RECORD, FIND, TOTAL, WALK, FORGET, RECORD_EVENTS, EVENTS_OF, RECORD_DECISION, DECISIONS_OF, COUNT_BY_NAMESPACE] });
  }

  /** Never rejects: what needs Redis says so while it is away. */
  async start(): Promise<void> {
    await this.#link.start();
    this.#retention.start();
  }

  /** Resolves when the step under way, if any, has ended. */
  async stop(): Promise<void> {
    await this.#retention.stop();
    this.#link.stop();
  }

  async record(finished: FinishedSandbox): Promise<void> {
    const { id, owner, poolName, claimedAt, terminatedAt } = finished;
    await this.#link.run(RECORD, [this.#key], [id, JSON.stringify(finished), `${tenantKey(owner)}/${poolName}`, claimedAt, terminatedAt, this.#options.retentionMs]);
  }

  async find(id: InstanceId): Promise<FinishedSandbox | undefined> {
    const [answer, entry] = await this.#link.run(FIND, [this.#key], [id]);
    return answer === 'ok' ? finishedOf(entry) : undefined;
  }

  async recordEvents(events: readonly { readonly id: number; readonly event: EventRecord }[]): Promise<void> {
    const parts = events.flatMap(({ id, event }) => (event.sandboxId === undefined ? [] : [event.sandboxId, id, JSON.stringify(event)]));
    if (parts.length > 0) await this.#link.run(RECORD_EVENTS, [this.#key], [MOST_EVENTS, UNFINISHED_MS, this.#options.retentionMs, ...parts]);
  }

  async eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]> {
    const [, ...events] = await this.#link.run(EVENTS_OF, [this.#key], [sandboxId]);
    return events.map((event) => JSON.parse(String(event).replace(/^\d+\|/, '')) as EventRecord);
  }

  async recordDecision({ envUid, group }: GroupKey, decision: ToldDecision): Promise<void> {
    await this.#link.run(RECORD_DECISION, [this.#key], [`${envUid}/${group}`, decision.id, JSON.stringify(decision), MOST_DECISIONS, this.#options.retentionMs]);
  }

  async decisionsOf({ envUid, group }: GroupKey): Promise<readonly ToldDecision[]> {
    const [, ...decisions] = await this.#link.run(DECISIONS_OF, [this.#key], [`${envUid}/${group}`]);
    return decisions.map((decision) => JSON.parse(String(decision)) as ToldDecision);
  }

  async countByNamespace(): Promise<ReadonlyMap<string, number>> {
    const [, ...counts] = await this.#link.run(COUNT_BY_NAMESPACE, [this.#key], []);
    const found = new Map<string, number>();
    for (let i = 0; i < counts.length; i += 2) found.set(String(counts[i]), Number(counts[i + 1]));
    return found;
  }

  async list(filter: FinishedFilter, { offset, limit }: Page): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }> {
    if (contradicts(filter)) return { items: [], total: 0 };
    const since = filter.since ?? EVER;
    const { level, exact, pattern } = indexOf(filter);
    const [, counted, newer, ...groups] = await this.#link.run(TOTAL, [this.#key], [since, exact ? level : '', pattern]);
    const total = Number(counted);
    if (offset >= total || limit === 0 || (!exact && groups.length === 0)) return { items: [], total };
    // What was claimed since then ended since then: that much is left out by rank alone.
    const rank = exact ? Math.min(offset, Number(newer)) : 0;
    const items = await this.#walk({ level, since, groups: groups.map(String), rank }, { skip: offset - rank, limit: Math.min(limit, total - offset) });
    return { items, total };
  }

  /** Steps of bounded cost, between which others' calls go first. */
  async #walk({ level, since, groups, rank }: Walk, { skip, limit }: { readonly skip: number; readonly limit: number }): Promise<readonly FinishedSandbox[]> {
    const items: FinishedSandbox[] = [];
    let last = '';
    let left = skip;
    for (let step = 0; step < MOST_STEPS && items.length < limit; step++) {
      const wanted = Math.min(limit - items.length, STEP_BODIES);
      const [answer, seen, matched, lastSeen, ...entries] = await this.#link.run(WALK, [this.#key], [level, last, rank, since === EVER ? 0 : since, STEP_ENTRIES, left, wanted, ...groups]);
      if (answer === 'lost') throw unavailable('the list changed while it was read; ask again');
      items.push(...entries.map(finishedOf));
      left = Math.max(0, left - Number(matched));
      if (Number(seen) === 0) break;
      last = String(lastSeen);
    }
    return items;
  }
}

interface Page { readonly offset: number; readonly limit: number }
interface Walk { readonly level: string; readonly since: number | string; readonly groups: readonly string[]; readonly rank: number }

/** The narrowest index that has all that match; `exact`: it has nothing else. `pattern`: Lua's, of the groups' names. */
const indexOf = (filter: FinishedFilter): { readonly level: string; readonly exact: boolean; readonly pattern: string } => {
  const { namespace, team, user } = filter.owner ?? filter;
  const { poolName } = filter;
  const pattern = `^${[namespace, team, user, poolName].map((part) => (part === undefined ? '[^/]*' : part.replaceAll(/[^a-zA-Z0-9]/g, '%$&'))).join('/')}$`;
  if (namespace !== undefined && team !== undefined && user !== undefined) return { level: `:owner:${namespace}/${team}/${user}`, exact: poolName === undefined, pattern };
  const exact = team === undefined && user === undefined && poolName === undefined;
  return { level: namespace === undefined ? ':all' : `:namespace:${namespace}`, exact, pattern };
};

/** Of `group|claimed|ended|JSON`. */
const finishedOf = (entry: unknown): FinishedSandbox => JSON.parse(String(entry).replace(/^\d+\|\d+\|\d+\|/, '')) as FinishedSandbox;
