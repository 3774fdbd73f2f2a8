import { LeaseLost, RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import {
  RecordExists,
  type RecordChange,
  type Records,
} from '../../../src/contracts/record-store.ts';
import type { FinishedFilter, GroupKey, History } from '../../../src/contracts/history.ts';
import type { EventRecord } from '../../../src/model/event.ts';
import type { FinishedSandbox } from '../../../src/model/sandbox.ts';
import {
  MOST_DECISIONS,
  type CompletedDecision,
} from '../../../src/model/envs/scaling-decision.ts';
import type { PoolRecord } from '../../../src/model/pools/pool.ts';

export class Followers<T> {
  readonly #reports: ((change: RecordChange<T>) => void)[] = [];

  add(report: (change: RecordChange<T>) => void, standing: Iterable<T>): void {
    for (const record of standing) report({ kind: 'put', record });
    this.#reports.push(report);
  }

  tell(change: RecordChange<T>): void {
    for (const report of this.#reports) report(change);
  }
}

export class MemoryPools implements Records<PoolRecord> {
  readonly records = new Map<string, PoolRecord>();
  readonly #followers = new Followers<PoolRecord>();

  async list(): Promise<readonly PoolRecord[]> {
    return [...this.records.values()];
  }

  async get(key: string): Promise<PoolRecord | undefined> {
    return [...this.records.values()].find(
      ({ name, owner }) => `${owner.namespace}/${name}` === key,
    );
  }

  async caughtUp(): Promise<void> {}

  async watch(report: (change: RecordChange<PoolRecord>) => void): Promise<void> {
    this.#followers.add(report, this.records.values());
  }

  async create(
    draft: Omit<PoolRecord, 'revision'>,
    permitted: () => boolean = () => true,
  ): Promise<PoolRecord> {
    if (!permitted()) throw new LeaseLost();
    if (
      [...this.records.values()].some(
        ({ name, owner }) => name === draft.name && owner.namespace === draft.owner.namespace,
      )
    )
      throw new RecordExists();
    const record = { ...draft, revision: '1' };
    this.records.set(record.uid, record);
    this.#followers.tell({ kind: 'put', record });
    return record;
  }

  async update(record: PoolRecord, permitted: () => boolean = () => true): Promise<PoolRecord> {
    if (!permitted()) throw new LeaseLost();
    if (this.records.get(record.uid)?.revision !== record.revision) throw new RecordConflict();
    const next = { ...record, revision: String(Number(record.revision) + 1) };
    this.records.set(record.uid, next);
    this.#followers.tell({ kind: 'put', record: next });
    return next;
  }

  async remove(record: PoolRecord): Promise<void> {
    if (this.records.get(record.uid)?.revision !== record.revision) throw new RecordConflict();
    this.records.delete(record.uid);
    this.#followers.tell({ kind: 'gone', record });
  }
}

export class MemoryHistory implements History {
  readonly finished: FinishedSandbox[] = [];
  readonly events: { readonly id: number; readonly event: EventRecord }[] = [];
  readonly decisions = new Map<string, readonly CompletedDecision[]>();

  async record(finished: FinishedSandbox): Promise<void> {
    if (!this.finished.some(({ id }) => id === finished.id)) this.finished.push(finished);
  }

  async find(id: string): Promise<FinishedSandbox | undefined> {
    return this.finished.find((finished) => finished.id === id);
  }

  async recordEvents(
    events: readonly { readonly id: number; readonly event: EventRecord }[],
  ): Promise<void> {
    for (const numbered of events)
      if (!this.events.some(({ id }) => id === numbered.id)) this.events.push(numbered);
  }

  async eventsOf(sandboxId: string): Promise<readonly EventRecord[]> {
    return this.events
      .filter(({ event }) => event.sandboxId === sandboxId)
      .sort((a, b) => a.id - b.id)
      .slice(-50)
      .map(({ event }) => event);
  }

  async eventsOfPool(namespace: string, name: string): Promise<readonly EventRecord[]> {
    return this.events
      .filter(
        ({ event: { sandboxId, owner, poolName } }) =>
          sandboxId === undefined && owner.namespace === namespace && poolName === name,
      )
      .sort((a, b) => a.id - b.id)
      .slice(-50)
      .map(({ event }) => event);
  }

  async recordDecision({ envUid, group }: GroupKey, decision: CompletedDecision): Promise<void> {
    const kept = (this.decisions.get(`${envUid}/${group}`) ?? []).filter(
      ({ id }) => id !== decision.id,
    );
    this.decisions.set(
      `${envUid}/${group}`,
      [...kept, decision].sort((a, b) => b.id - a.id).slice(0, MOST_DECISIONS),
    );
  }

  async decisionsOf({ envUid, group }: GroupKey): Promise<readonly CompletedDecision[]> {
    return this.decisions.get(`${envUid}/${group}`) ?? [];
  }

  async countByNamespace(): Promise<ReadonlyMap<string, number>> {
    return new Map(
      [...new Set(this.finished.map(({ owner }) => owner.namespace))].map((namespace) => [
        namespace,
        this.finished.filter(({ owner }) => owner.namespace === namespace).length,
      ]),
    );
  }

  async list(
    filter: FinishedFilter,
    page: { readonly offset: number; readonly limit: number },
  ): Promise<{ items: readonly FinishedSandbox[]; total: number }> {
    const matching = this.finished
      .filter(
        ({ owner, poolName, terminatedAt }) =>
          (filter.namespace ?? owner.namespace) === owner.namespace &&
          (filter.team ?? owner.team) === owner.team &&
          (filter.user ?? owner.user) === owner.user &&
          (filter.poolName ?? poolName) === poolName &&
          terminatedAt >= (filter.since ?? 0),
      )
      .sort((a, b) => b.claimedAt - a.claimedAt || (a.id < b.id ? 1 : -1));
    return { items: matching.slice(page.offset, page.offset + page.limit), total: matching.length };
  }
}
