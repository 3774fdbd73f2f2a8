import {
  contradicts,
  type FinishedFilter,
  type GroupKey,
  type History,
} from '../../contracts/history.ts';
import type { Log } from '../../contracts/log.ts';
import { Retention, type RetentionOptions } from '../../contracts/retention.ts';
import type { EventRecord } from '../../model/event.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { FinishedSandbox } from '../../model/sandbox.ts';
import type { CompletedDecision } from '../../model/envs/scaling-decision.ts';
import type { Database } from './database.ts';
import type { SqlValue } from './database-library.ts';

export interface HistoryOptions extends RetentionOptions {
  readonly log: Log;
}

/**
 * Totals are sums of stored counts. Pages are reached in small steps, so a claim waits only a
 * millisecond or two, however long the history is. From `start()` on, deletes records beyond the
 * retention or the size limit.
 */
export class SqliteHistory implements History {
  readonly #database: Database;
  readonly #retention: Retention;

  constructor(database: Database, options: HistoryOptions) {
    this.#database = database;
    this.#retention = new Retention(options, {
      trim: async ({ tenantBytes, totalBytes }) =>
        (await database.run('history.trim', tenantBytes, totalBytes, SWEEP_ROWS)).length,
      forget: async (before) => {
        const forgotten = await Promise.all([
          database.run('history.forget', before, SWEEP_ROWS),
          database.run('poolEvents.forget', before, SWEEP_ROWS),
        ]);
        return forgotten.some((rows) => rows.length > 0);
      },
      failed: (error) => {
        options.log.warn({ error }, 'history-not-deleted');
      },
    });
  }

  start(): void {
    this.#retention.start();
  }

  /** Resolves after the current step. */
  stop(): Promise<void> {
    return this.#retention.stop();
  }

  async record(finished: FinishedSandbox): Promise<void> {
    const {
      id,
      owner: { namespace, team, user },
      poolName,
      claimedAt,
      terminatedAt,
    } = finished;
    await this.#database.run(
      'history.record',
      id,
      namespace,
      team,
      user,
      poolName,
      claimedAt,
      terminatedAt,
      JSON.stringify(finished),
    );
    this.#retention.recorded();
  }

  async find(id: InstanceId): Promise<FinishedSandbox | undefined> {
    const [row] = await this.#database.run('history.find', id);
    return row && (JSON.parse(String(row[0])) as FinishedSandbox);
  }

  async recordEvents(
    events: readonly { readonly id: number; readonly event: EventRecord }[],
  ): Promise<void> {
    const rows = events.flatMap(({ id, event }) =>
      event.sandboxId === undefined ? [] : [[event.sandboxId, id, JSON.stringify(event)]],
    );
    const ofPools = events.flatMap(({ id, event }) =>
      event.sandboxId === undefined ? [[id, JSON.stringify(event)]] : [],
    );
    if (rows.length > 0) await this.#database.run('events.record', JSON.stringify(rows));
    if (ofPools.length > 0) await this.#database.run('poolEvents.record', JSON.stringify(ofPools));
  }

  async eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]> {
    return (await this.#database.run('events.of', sandboxId)).map(
      ([body]) => JSON.parse(String(body)) as EventRecord,
    );
  }

  async eventsOfPool(namespace: string, name: string): Promise<readonly EventRecord[]> {
    return (await this.#database.run('poolEvents.of', namespace, name)).map(
      ([body]) => JSON.parse(String(body)) as EventRecord,
    );
  }

  async recordDecision({ envUid, group }: GroupKey, decision: CompletedDecision): Promise<void> {
    await this.#database.run(
      'decisions.record',
      envUid,
      group,
      decision.id,
      JSON.stringify(decision),
    );
  }

  async decisionsOf({ envUid, group }: GroupKey): Promise<readonly CompletedDecision[]> {
    return (await this.#database.run('decisions.of', envUid, group)).map(
      ([body]) => JSON.parse(String(body)) as CompletedDecision,
    );
  }

  async countByNamespace(): Promise<ReadonlyMap<string, number>> {
    return new Map(
      (await this.#database.run('history.countByNamespace')).map(([namespace, finished]) => [
        String(namespace),
        Number(finished),
      ]),
    );
  }

  async list(
    filter: FinishedFilter,
    page: Page,
  ): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }> {
    if (contradicts(filter)) return { items: [], total: 0 };
    const { namespace, team, user } = filter.owner ?? filter;
    const of =
      namespace !== undefined && team !== undefined && user !== undefined ? 'Owner' : 'Any';
    const asked: Asked = {
      of,
      parameters: [
        namespace ?? null,
        team ?? null,
        user ?? null,
        filter.poolName ?? null,
        filter.since ?? 0,
      ],
    };
    const total = Number(
      (await this.#database.run(`history.totalOf${of}`, ...asked.parameters))[0]?.[0],
    );
    return { items: await this.#walk(asked, page, total), total };
  }

  /** In steps of bounded cost, so that writes run between them. */
  async #walk(
    asked: Asked,
    { offset, limit }: Page,
    total: number,
  ): Promise<readonly FinishedSandbox[]> {
    const { of, parameters } = asked;
    const items: FinishedSandbox[] = [];
    if (offset >= total) return items;
    const { before, passed } = await this.#seek(asked, offset);
    let [claimedAt, id]: [SqlValue, SqlValue] = [before, ''];
    let skip = offset - passed;
    for (let met = passed; met < total && items.length < limit;) {
      const wanted = limit - items.length;
      const entries = Math.min(2 * (skip + wanted), STEP_ENTRIES);
      const [summary, ...bodies] = await this.#database.run(
        `history.walkOf${of}`,
        ...parameters,
        claimedAt,
        id,
        entries,
        skip,
        wanted,
      );
      for (const [body] of bodies) items.push(JSON.parse(String(body)) as FinishedSandbox);
      const [seen, matching, lastClaimedAt, lastId] = summary ?? [];
      if (Number(seen) < entries || lastClaimedAt === undefined || lastId === undefined) break;
      met += Number(matching);
      skip = Math.max(0, skip - Number(matching));
      [claimedAt, id] = [lastClaimedAt, lastId];
    }
    return items;
  }

  /** At or after it, `passed` matches were claimed, at most as many as are skipped. */
  async #seek(
    { of, parameters }: Asked,
    offset: number,
  ): Promise<{ readonly before: number; readonly passed: number }> {
    const [found] =
      offset < LEAST_SOUGHT
        ? []
        : await this.#database.run(`history.seekOf${of}`, ...parameters, offset);
    return found
      ? { before: Number(found[0]), passed: Number(found[1]) }
      : { before: Number.MAX_SAFE_INTEGER, passed: 0 };
  }
}

export const sqliteHistory = (database: Database, options: HistoryOptions): SqliteHistory =>
  new SqliteHistory(database, options);

/** A few ms of the database's thread. */
export const SWEEP_ROWS = 100;

/** About a millisecond. */
const STEP_ENTRIES = 2_000;

/** Below this, a walk is faster than a seek. */
const LEAST_SOUGHT = 200;

interface Page {
  readonly offset: number;
  readonly limit: number;
}
interface Asked {
  readonly of: 'Owner' | 'Any';
  readonly parameters: readonly SqlValue[];
}
