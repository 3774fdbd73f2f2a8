import { expect } from 'chai';
import type { PromotedChange, PromotedKeyVisit } from '../../src/contracts/fleet/promoted-keys.ts';
import type { RecordChange, Records } from '../../src/contracts/record-store.ts';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import { MemoryApiKeys } from '../support/fakes/memory-api-keys.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { ClusterKeys } from './a-promoting-fleet.ts';

/** Shows a store to one replica, which hears of the changes of others when it is let. */
class LateView implements Records<ApiKeyRecord> {
  readonly #store: MemoryApiKeys;
  #late: RecordChange<ApiKeyRecord>[] = [];
  #report: (change: RecordChange<ApiKeyRecord>) => void = () => undefined;

  constructor(store: MemoryApiKeys) {
    this.#store = store;
    void store.watch((change) => void this.#late.push(change));
  }

  hear(most = Infinity): void {
    for (const change of this.#late.splice(0, most)) this.#report(change);
  }

  async watch(report: (change: RecordChange<ApiKeyRecord>) => void): Promise<void> {
    this.#late = [];
    this.#report = report;
    for (const record of this.#store.records.values()) report({ kind: 'put', record });
  }

  list = () => this.#heard(this.#store.list());
  get = (key: string) => this.#heard(this.#store.get(key));
  caughtUp = () => this.#heard(this.#store.caughtUp());
  create = (draft: Omit<ApiKeyRecord, 'revision'>) => this.#heard(this.#store.create(draft));
  update = (record: ApiKeyRecord) => this.#heard(this.#store.update(record));
  remove = (record: ApiKeyRecord) => this.#heard(this.#store.remove(record));

  async #heard<T>(done: Promise<T>): Promise<T> {
    try {
      return await done;
    } finally {
      this.hear();
    }
  }
}

interface Replica {
  readonly view: LateView;
  readonly keys: ClusterKeys;
}

interface Worker extends Replica {
  /** Keys of which it was told that they are gone. */
  readonly gone: Set<string>;
}

interface Word extends PromotedChange {
  readonly isLast: boolean;
}

/** One link, over which words go as RecordTeller says them: each at its time, and late. */
class PlayedLink {
  readonly manager: Replica;
  readonly worker: Worker;
  readonly #world: PlayedReplicas;
  readonly #visit: PromotedKeyVisit;
  readonly #unfollow: () => void;
  /** Keys that there were copies of when it began. */
  readonly #stood: ReadonlySet<string>;
  readonly #changed = new Set<string>();
  readonly #told = new Set<string>();
  /** Ids that are still to be told, until all were; and those revoked before these were read. */
  #rest: string[] | undefined;
  #revokedBefore: readonly string[] = [];
  #isCaughtUp = false;
  #onItsWay: Word | undefined;

  constructor(world: PlayedReplicas, manager: Replica, worker: Worker) {
    [this.#world, this.manager, this.worker] = [world, manager, worker];
    this.#stood = new Set(
      [...world.revoked.values(), ...world.promoted.values()].filter(
        (keyId) => worker.keys.apiKeys.find(keyId) !== undefined,
      ),
    );
    worker.keys.copies.leadsTo('ws://m', 'm');
    this.#visit = worker.keys.copies.begin('m');
    this.#unfollow = manager.keys.keys.follow((keyId) => this.#changed.add(keyId));
  }

  /** The manager reads all, or says its next word. */
  async say(): Promise<void> {
    const { keys } = this.manager.keys;
    if (this.#onItsWay) return;
    if (!this.#rest) {
      this.#rest = (await keys.list()).map(({ keyId }) => keyId);
      this.#revokedBefore = [...this.#world.revoked.values()];
      return;
    }
    const ids = this.#isCaughtUp ? [...this.#changed] : this.#rest.splice(0, 2);
    if (this.#isCaughtUp && ids.length === 0) return;
    if (this.#isCaughtUp) this.#changed.clear();
    const isLast = !this.#isCaughtUp && this.#rest.length === 0;
    if (isLast) this.#isCaughtUp = true;
    const known = ids.flatMap((keyId) => keys.find(keyId) ?? []);
    const gone = isLast || !this.#isCaughtUp ? [] : ids.filter((keyId) => !keys.find(keyId));
    this.#onItsWay = { keys: known, gone, now: this.#world.clock.now(), isLast };
  }

  async hear(): Promise<void> {
    const word = this.#onItsWay;
    if (!word) return;
    this.#onItsWay = undefined;
    for (const keyId of word.gone) this.worker.gone.add(keyId);
    for (const { keyId } of word.keys) this.#told.add(keyId);
    await this.#world.holds(this.#visit.take(word));
    if (!word.isLast) return;
    for (const keyId of this.#revokedBefore)
      if (this.#stood.has(keyId) && !this.#told.has(keyId)) this.worker.gone.add(keyId);
    await this.#world.holds(this.#visit.caughtUp(this.#told));
  }

  async talk(): Promise<void> {
    for (let turn = 0; !this.isQuiet; turn += 1) {
      expect(turn, 'it has nothing to say some time').to.be.lessThan(1_000);
      await this.say();
      await this.hear();
    }
  }

  get isQuiet(): boolean {
    return this.#isCaughtUp && !this.#onItsWay && this.#changed.size === 0;
  }

  async leave(): Promise<void> {
    await this.#world.holds(this.#visit.left());
  }

  cut(): void {
    this.#unfollow();
    this.#visit.end();
  }
}

export type ReplicaStep =
  | { readonly does: 'open' | 'say' | 'hear' | 'talk' | 'cut' | 'leave'; readonly link: number }
  | { readonly does: 'promote' | 'revoke' | 'watch' | 'restart' | 'mislead'; readonly at: number }
  | { readonly does: 'wait' };

/** Two replicas of a manager and two of a worker, each pair with a link that may be cut. */
export class PlayedReplicas {
  readonly clock = new TestClock();
  /** API keys of the manager, by text: their ids. */
  readonly promoted = new Map<string, string>();
  readonly revoked = new Map<string, string>();
  readonly #links: (PlayedLink | undefined)[] = [undefined, undefined, undefined, undefined];
  readonly #store = new MemoryApiKeys();
  #managers: readonly Replica[] = [];
  #workers: readonly Worker[] = [];

  static async start(): Promise<PlayedReplicas> {
    const world = new PlayedReplicas();
    const hub = new MemoryApiKeys();
    const replica = async (pepper: number, store: MemoryApiKeys): Promise<Replica> => {
      const view = new LateView(store);
      return { view, keys: await ClusterKeys.start(pepper, world.clock, view) };
    };
    world.#managers = [await replica(1, hub), await replica(1, hub)];
    world.#workers = (await Promise.all([replica(2, world.#store), replica(2, world.#store)])).map(
      (each) => ({ ...each, gone: new Set<string>() }),
    );
    return world;
  }

  /** Resolves once a word holds, for which the clock goes on: reads wait for each other. */
  async holds(word: Promise<void>): Promise<void> {
    let isOver = false;
    const over = word.finally(() => (isOver = true));
    for (await quiet(); !isOver; await quiet()) this.clock.advance(250);
    await over;
  }

  async take(step: ReplicaStep): Promise<void> {
    if (step.does === 'wait') this.clock.advance(61_000);
    else if ('link' in step) await this.#befallLink(step.does, step.link % 4);
    else await this.#befallReplica(step.does, step.at);
    await quiet();
    this.#checkRevoked();
  }

  /** After the last fault. */
  async settle(): Promise<void> {
    for (const { view } of [...this.#managers, ...this.#workers]) view.hear();
    for (let n = 0; n < this.#links.length; n += 1) await this.#befallLink('open', n);
    for (let turn = 0; this.#links.some((link) => link?.isQuiet === false); turn += 1) {
      expect(turn, 'links have nothing to say some time').to.be.lessThan(1_000);
      for (const link of this.#links) {
        await link?.say();
        await link?.hear();
      }
      for (const { view } of [...this.#managers, ...this.#workers]) view.hear();
      await quiet();
      this.#checkRevoked();
    }
    for (const [n, { keys }] of this.#workers.entries()) {
      for (const apiKey of this.promoted.keys())
        expect(keys.told(apiKey), `a promoted key at ${n}`).to.equal('good');
      for (const apiKey of this.revoked.keys())
        expect(keys.told(apiKey), `a revoked key at ${n}`).to.equal('INVALID_API_KEY');
    }
    expect([...this.#store.records.keys()]).to.have.members([...this.promoted.values()]);
  }

  #checkRevoked(): void {
    for (const [n, { keys, gone }] of this.#workers.entries())
      for (const [apiKey, keyId] of this.revoked)
        if (gone.has(keyId)) expect(keys.told(apiKey), `it was told, at ${n}`).not.to.equal('good');
  }

  async #befallLink(does: string, n: number): Promise<void> {
    const link = this.#links[n];
    if (does === 'open')
      this.#links[n] ??= new PlayedLink(this, this.#managers[n >> 1]!, this.#workers[n & 1]!);
    else if (does === 'say') await link?.say();
    else if (does === 'hear') await link?.hear();
    else if (does === 'talk') {
      if (!link) await this.#befallLink('open', n);
      await this.#links[n]?.talk();
    } else {
      if (does === 'leave') await link?.leave();
      link?.cut();
      this.#links[n] = undefined;
    }
  }

  async #befallReplica(does: string, at: number): Promise<void> {
    const manager = this.#managers[at % 2]!;
    const worker = this.#workers[at % 2]!;
    if (does === 'promote') {
      const { record, apiKey } = await this.#managers[0]!.keys.mint({ lifetimeMs: 1e9 });
      await manager.keys.promote(record);
      this.promoted.set(apiKey, record.keyId);
    } else if (does === 'revoke') {
      const [apiKey, keyId] = [...this.promoted][at % Math.max(1, this.promoted.size)] ?? [];
      if (apiKey === undefined || keyId === undefined) return;
      await manager.view.get(keyId);
      await manager.keys.apiKeys.remove(manager.keys.apiKeys.find(keyId)!);
      this.promoted.delete(apiKey);
      this.revoked.set(apiKey, keyId);
    } else if (does === 'watch') [manager, worker][(at >> 1) % 2]!.view.hear(1 + (at >> 2));
    else {
      for (const [n, link] of this.#links.entries())
        if (link?.worker === worker) await this.#befallLink('cut', n);
      if (does === 'mislead') worker.keys.copies.leadsTo('ws://m', 'another');
      else {
        worker.gone.clear();
        await worker.keys.restart();
      }
    }
  }
}

/** What is written beside a step is written. */
const quiet = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  await new Promise((resolve) => void setImmediate(resolve));
};
