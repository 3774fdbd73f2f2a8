import { createActor, type Actor } from 'xstate';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination, Lease } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import type { RecordChange, Records } from '../contracts/record-store.ts';
import { RecordConflict } from '../contracts/sandbox-driver.ts';
import { phaseOf, type PoolPolicy } from '../machines/pool-arithmetic.ts';
import { poolMachine, surplusOf, type PoolContext, type PoolEvent, type PoolIntent } from '../machines/pool-machine.ts';
import type { SandboxEvent, SandboxInput } from '../machines/sandbox-events.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { PoolCounts, PoolPhase, PoolRecord } from '../model/pool.ts';
import type { InstanceRecord } from '../model/sandbox.ts';
import type { InstanceDefinition } from '../model/template.ts';
import type { Tenant } from '../model/tenant.ts';
import { shardOf } from '../model/shards.ts';
import { isNewer } from '../model/revision-order.ts';
import { SharedReads } from '../model/shared-reads.ts';
import type { EventSink } from './event-feed.ts';
import type { Outbox } from './outbox.ts';
import { PoolIndex } from './pool-index.ts';
import { RecentSet } from '../model/recent-set.ts';

export interface PoolHostDeps {
  readonly pools: Records<PoolRecord>;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly log: Log;
  readonly policy: PoolPolicy;
  readonly newId: () => InstanceId;
  readonly events: EventSink;
  readonly outbox: Outbox;
  readonly arm: (uid: string, at: number | undefined) => void;
  readonly launch: (input: SandboxInput) => void;
  readonly dismissable: (uid: string) => readonly string[];
  readonly running: (uid: string) => readonly string[];
  readonly tell: (id: string, event: SandboxEvent) => void;
  /** The pool is gone for good; what it left behind is to be retired. */
  readonly orphaned: (uid: string) => void;
}

export interface PoolSnapshot { readonly record: PoolRecord; readonly counts: PoolCounts; readonly phase: PoolPhase }

/** Writes of one change, each at the revision that was read last. */
const MOST_ATTEMPTS = 4;
const MOST_GONE = 1_000;

/** The pools' half of the supervisor: their actors, their index, and what their intents do. */
export class PoolHost {
  readonly index = new PoolIndex();
  readonly #deps: PoolHostDeps;
  readonly #actors = new Map<string, Actor<typeof poolMachine>>();
  readonly #writing = new Map<string, Promise<unknown>>();
  readonly #led = new Set<number>();
  /** Pools that are no more, as long as a late word of them may come. */
  readonly #gone = new RecentSet(MOST_GONE);
  readonly #reads: SharedReads<PoolRecord>;

  constructor(deps: PoolHostDeps) {
    this.#deps = deps;
    this.#reads = new SharedReads({ clock: deps.clock, read: (name) => deps.pools.get(name) });
  }

  get(uid: string): PoolSnapshot | undefined {
    const actor = this.#actors.get(uid);
    return actor && shown(actor.getSnapshot().context, this.#deps.policy);
  }

  /** Reads every pool, with what its owner's quota counts, and follows what anybody changes from then on. */
  async start(): Promise<void> {
    let restored: Promise<unknown> | undefined;
    await this.#deps.pools.watch((change) => { this.#learn(change); });
    for (const actor of this.#actors.values()) {
      const { uid, owner, replicas } = actor.getSnapshot().context.record;
      restored = Promise.all([
        restored,
        this.#deps.coordination.restore(owner, 'pools', { name: uid, amount: 1 }),
        this.#deps.coordination.restore(owner, 'replicas', { name: uid, amount: replicas }),
      ]);
    }
    await restored;
  }

  /** A pool that the store has just made. */
  add(record: PoolRecord): void { this.#learn({ kind: 'put', record }); }

  /** Reads the pool uncached: what is shown of it then is no older than this call. */
  async freshen(namespace: string, name: string): Promise<void> {
    this.#found(namespace, name, await this.#deps.pools.get(`${namespace}/${name}`));
  }

  /** The same for one that the mirror doesn't show: read at most once in 250 ms, for all who miss it. */
  async lookUp(namespace: string, name: string): Promise<void> {
    this.#found(namespace, name, await this.#reads.read(`${namespace}/${name}`));
  }

  /** The record of one of the owner's, read uncached. */
  async recorded(owner: Tenant, uid: string): Promise<PoolRecord | undefined> {
    const name = this.get(uid)?.record.name;
    // One that no mirror shows is known by its uid alone.
    if (name === undefined) return (await this.#deps.pools.list()).find((record) => record.uid === uid);
    await this.freshen(owner.namespace, name);
    return this.get(uid)?.record;
  }

  #found(namespace: string, name: string, record: PoolRecord | undefined): void {
    const known = this.index.uidOf(namespace, name);
    const shown = known === undefined ? undefined : this.get(known)?.record;
    if (shown && shown.uid !== record?.uid) this.#learn({ kind: 'gone', record: shown });
    if (record) this.#learn({ kind: 'put', record });
  }

  #learn({ kind, record }: RecordChange<PoolRecord>): void {
    const known = this.#actors.get(record.uid)?.getSnapshot().context.record;
    if (kind === 'gone') {
      this.#gone.add(record.uid);
      if (known) this.send(record.uid, { type: 'REMOVED' });
    } else if (known) {
      if (isNewer(record.revision, known.revision)) this.send(record.uid, { type: 'RECORD', record, now: this.#deps.clock.now() });
    } else if (!this.#gone.has(record.uid)) {
      this.#host(record);
      this.#deps.outbox.drain();
    }
  }

  send(uid: string, event: PoolEvent): void {
    const actor = this.#actors.get(uid);
    if (!actor) return;
    const before = actor.getSnapshot().context;
    actor.send(event);
    this.#changed(uid, actor, before);
    this.#deps.outbox.drain();
  }

  replan(uid: string): void {
    const record = this.#actors.get(uid)?.getSnapshot().context.record;
    if (record) this.send(uid, { type: 'RECORD', record, now: this.#deps.clock.now() });
  }

  /** Begins to decide for each pool of the shard. */
  lead(shard: number): void {
    this.#led.add(shard);
    for (const uid of this.#in(shard)) this.send(uid, { type: 'LEAD', now: this.#deps.clock.now() });
  }

  follow(shard: number): void {
    this.#led.delete(shard);
    for (const uid of this.#in(shard)) this.send(uid, { type: 'FOLLOW' });
  }

  /**
   * Writes a change of a pool's record, one at a time per pool, and tells the actor. Answers the new record, or undefined
   * for an unknown pool. Rejects with RecordConflict or OutcomeUnknown.
   */
  async change(uid: string, change: (record: PoolRecord) => PoolRecord | Promise<PoolRecord>): Promise<PoolRecord | undefined> {
    return await this.#inTurn(uid, async () => {
      for (let attempt = 1; ; attempt++) {
        const current = this.#actors.get(uid)?.getSnapshot().context.record;
        if (!current) return undefined;
        try {
          const record = await this.#deps.pools.update(await change(current));
          this.#learn({ kind: 'put', record });
          return record;
        } catch (error) {
          if (!(error instanceof RecordConflict) || attempt === MOST_ATTEMPTS) throw error;
          await this.#readAgain(current);
        }
      }
    });
  }

  /** Somebody else's write came first. */
  async #readAgain({ uid, owner, name }: PoolRecord): Promise<void> {
    const record = await this.#deps.pools.get(`${owner.namespace}/${name}`);
    if (record?.uid === uid) this.#learn({ kind: 'put', record });
    else this.send(uid, { type: 'REMOVED' });
  }

  /** One write at a time per pool, so that none of this process conflicts with another of it. */
  async #inTurn<T>(uid: string, write: () => Promise<T>): Promise<T> {
    const turn = (this.#writing.get(uid) ?? Promise.resolve()).catch(() => undefined).then(write);
    this.#writing.set(uid, turn);
    try {
      return await turn;
    } finally {
      if (this.#writing.get(uid) === turn) this.#writing.delete(uid);
    }
  }

  #host(record: PoolRecord, counts?: PoolCounts): void {
    const { uid } = record;
    const actor = createActor(poolMachine, { input: { record, policy: this.#deps.policy, now: this.#deps.clock.now(), ...(counts ? { counts } : {}) } });
    actor.on('*', (intent) => this.#deps.outbox.put({
      name: `pool ${intent.type}`,
      lease: this.#deps.coordination.lease(shardOf(uid)) ?? LOST_LEASE,
      act: () => this.#carryOut(uid, intent),
      ...(intent.type === 'launch' ? { dropped: () => { this.send(uid, { type: 'LAUNCHES_DROPPED', count: intent.count, now: this.#deps.clock.now() }); } } : {}),
    }));
    actor.subscribe({ error: () => undefined }); // looked at after each send; unobserved it would end the process
    this.#actors.set(uid, actor);
    this.index.add(record);
    actor.start();
    if (this.#led.has(shardOf(uid))) this.send(uid, { type: 'LEAD', now: this.#deps.clock.now() });
  }

  #in(shard: number): readonly string[] { return [...this.#actors.keys()].filter((uid) => shardOf(uid) === shard); }

  #changed(uid: string, actor: Actor<typeof poolMachine>, before: PoolContext): void {
    const snapshot = actor.getSnapshot();
    if (snapshot.status === 'error') {
      this.#deps.log.error({ entity: 'pool', uid, error: String(snapshot.error) }, 'actor threw; rebuilt from its record');
      this.#host(before.record, before.counts);
      return;
    }
    const phase = shown(snapshot.context, this.#deps.policy).phase;
    const phaseBefore = shown(before, this.#deps.policy).phase;
    if (phase !== phaseBefore) this.#deps.log.info({ entity: 'pool', uid, name: before.record.name, from: phaseBefore, to: phase, ...startFailureOf(snapshot.context) }, 'pool moved');
    this.#tell(before, snapshot.context);
    this.#deps.arm(uid, snapshot.context.deadline);
    if (snapshot.matches({ lifecycle: 'removed' })) {
      this.#actors.delete(uid);
      this.index.remove(before.record);
      this.#deps.arm(uid, undefined);
      this.#forgotten(before.record);
    }
  }

  #tell(before: PoolContext, { breaker, record }: PoolContext): void {
    const pausedBefore = before.breaker.pausedUntil;
    if (breaker.pausedUntil === pausedBefore) return;
    const base = { at: this.#deps.clock.now(), owner: record.owner, poolName: record.name };
    const shard = shardOf(record.uid);
    const noted = { shard, ours: this.#led.has(shard), kept: false, key: `${record.uid}/${pausedBefore}/${breaker.pausedUntil}` };
    if (breaker.pausedUntil > 0) this.#deps.events.note({ ...base, reason: 'BackOff', why: breaker.reason, until: breaker.pausedUntil }, noted);
    else this.#deps.events.note({ ...base, reason: 'Recovered' }, noted);
  }

  /** Whoever removed it, its part of the quota goes; the leader sees to it. */
  #forgotten({ uid, owner }: PoolRecord): void {
    this.#gone.add(uid);
    if (!this.#led.has(shardOf(uid))) return;
    const { coordination, outbox } = this.#deps;
    const act = async (): Promise<void> => {
      await coordination.release(owner, 'pools', uid);
      await coordination.release(owner, 'replicas', uid);
    };
    outbox.put({ name: 'pool release quota', lease: undefined, act });
    this.#deps.orphaned(uid);
  }

  #carryOut(uid: string, intent: PoolIntent): void | Promise<void> {
    switch (intent.type) {
      case 'launch': return this.#launch(uid, intent.count);
      case 'trim': return this.#trim(uid);
      case 'end-running': {
        for (const id of this.#deps.running(uid)) this.#deps.tell(id, { type: 'END', reason: 'force-deleted', now: this.#deps.clock.now() });
        return;
      }
      case 'save-breaker': return this.change(uid, (record) => ({ ...record, breaker: intent.breaker })).then(() => undefined);
      case 'remove': return this.#inTurn(uid, () => this.#remove(uid));
    }
  }

  #launch(uid: string, count: number): void {
    const record = this.#actors.get(uid)?.getSnapshot().context.record;
    if (!record) return;
    const { definition } = record;
    for (let i = 0; i < count; i++) {
      const now = this.#deps.clock.now();
      this.#deps.launch({
        now,
        birth: {
          definition,
          record: {
            id: this.#deps.newId(), poolUid: uid, poolName: record.name, poolOwner: record.owner, createdAt: now,
            updateRevision: record.updateRevision, cpu: definition.cpu, memory: definition.memory,
            containerImages: Object.fromEntries(definition.containers.map(({ name, image }) => [name, image])),
            startupTimeoutMs: definition.startupTimeoutMs, ...endpointsOf(definition),
          },
        },
      });
    }
  }

  /** The surplus is looked at again before each one: what was decided a moment ago may have changed. */
  #trim(uid: string): void {
    for (const id of this.#deps.dismissable(uid)) {
      const context = this.#actors.get(uid)?.getSnapshot().context;
      if (!context || surplusOf(context) === 0) return;
      this.#deps.tell(id, { type: 'RETIRE', now: this.#deps.clock.now() });
    }
  }

  async #remove(uid: string): Promise<void> {
    const record = this.#actors.get(uid)?.getSnapshot().context.record;
    if (!record) return;
    try {
      await this.#deps.pools.remove(record);
    } catch (error) {
      if (error instanceof RecordConflict) await this.#readAgain(record);
      this.send(uid, { type: 'REMOVE_UNSETTLED', now: this.#deps.clock.now() });
      if (error instanceof RecordConflict) return;
      throw error;
    }
    this.send(uid, { type: 'REMOVED' });
  }
}

const endpointsOf = ({ endpoints, network }: InstanceDefinition): Pick<InstanceRecord, 'endpoints'> => endpoints
  ? { endpoints: Object.fromEntries(Object.entries(endpoints).map(([name, { port, scheme }]) => [name, { port, scheme, onHost: network === 'host' }])) } : {};

/** What no replica holds: an intent that carries it is dropped. */
export const LOST_LEASE: Lease = { epoch: 0, held: () => false };

const startFailureOf = ({ breaker }: PoolContext): { readonly startFailure?: string } => (breaker.reason === '' ? {} : { startFailure: breaker.reason });

const shown = (context: PoolContext, policy: PoolPolicy): PoolSnapshot => ({
  record: context.record,
  counts: context.counts,
  phase: phaseOf(context, policy),
});
