import { createActor, type Actor } from 'xstate';
import type { Lease } from '../../contracts/coordination.ts';
import type { RecordChange } from '../../contracts/record-store.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import { phaseOf } from '../../machines/pool/arithmetic.ts';
import { startTroubleOf, type StartTrouble } from '../../machines/pool/decisions.ts';
import type { PoolContext, PoolEvent, PoolIntent } from '../../machines/pool/events.ts';
import { poolMachine } from '../../machines/pool/machine.ts';
import type { PoolRecord, ReplicaSemantics } from '../../model/pools/pool.ts';
import { amountsOfPool, SIZED_RESOURCES } from '../../model/quota.ts';
import type { Tenant } from '../../model/tenant.ts';
import { shardOf } from '../../model/shards.ts';
import { SharedReads } from '../../lib/shared-reads.ts';
import { TransitionHistory } from '../runtime/transition-history.ts';
import { launchOrderOf } from '../sandbox/launch-order.ts';
import { OwnedIndex } from '../runtime/owned-index.ts';
import { shown, wholeOf, type PoolActorView, type PoolSnapshot } from './pool-snapshot.ts';
import { PoolEventRecorder } from './pool-event-recorder.ts';
import { InstanceCounts, type Move } from './instance-counts.ts';
import { PoolRetirements } from './pool-retirements.ts';
import { Rebuilds } from '../runtime/rebuilds.ts';
import { SerializedWriter } from '../runtime/serialized-writer.ts';
import { pathOf } from '../runtime/state-path.ts';
import type { PoolHostDeps } from './pool-host-deps.ts';

/** The pools' half of the supervisor: their actors, their index, and what their intents do. */
export class PoolHost {
  readonly index = new OwnedIndex();
  readonly transitions: TransitionHistory<PoolEvent | { readonly type: 'FOUND' | 'THREW' }>;
  readonly #deps: PoolHostDeps;
  readonly #actors = new Map<string, Actor<typeof poolMachine>>();
  readonly #counts = new InstanceCounts();
  readonly #retirements: PoolRetirements;
  readonly #rebuilds: Rebuilds;
  /** The records of pools whose actor threw, and that have no other yet. */
  readonly #unhosted = new Map<string, PoolRecord>();
  #hears = false;
  /** Every pool that there was is known: others are new. */
  #started = false;
  readonly #writer: SerializedWriter<PoolRecord>;
  readonly #led = new Set<number>();
  readonly #reads: SharedReads<PoolRecord>;
  readonly #events: PoolEventRecorder;

  constructor(deps: PoolHostDeps) {
    this.#deps = deps;
    this.transitions = new TransitionHistory({
      kind: 'pool',
      clock: deps.clock,
      log: deps.log,
      causeOf: () => '',
    });
    this.#rebuilds = new Rebuilds({ ...deps, entity: 'pool', transitions: this.transitions });
    this.#retirements = new PoolRetirements({
      ...deps,
      contextOf: (uid) => this.#actors.get(uid)?.getSnapshot().context,
    });
    this.#reads = new SharedReads({ clock: deps.clock, read: (name) => deps.pools.get(name) });
    this.#events = new PoolEventRecorder({
      ...deps,
      leads: (shard) => this.#led.has(shard),
    });
    this.#writer = new SerializedWriter({
      records: deps.pools,
      current: (uid) => this.#actors.get(uid)?.getSnapshot().context.record,
    });
  }

  /** What `replicas` counts. */
  get semantics(): ReplicaSemantics {
    return this.#deps.policy.replicaSemantics;
  }

  get(uid: string): PoolSnapshot | undefined {
    const actor = this.#actors.get(uid);
    return actor && shown(actor.getSnapshot().context, this.#deps.policy);
  }

  /** What keeps the pool's instances from starting, as far as this replica knows. */
  startTrouble(uid: string): StartTrouble | undefined {
    const actor = this.#actors.get(uid);
    return actor && startTroubleOf(actor.getSnapshot().context, this.#deps.clock.now());
  }

  get size(): number {
    return this.#actors.size;
  }

  /** All of them. */
  snapshots(): readonly PoolSnapshot[] {
    return [...this.#actors.values()].map((actor) =>
      shown(actor.getSnapshot().context, this.#deps.policy),
    );
  }

  /** All of a pool's actor, for whoever looks inside. */
  whole(uid: string): PoolActorView | undefined {
    const actor = this.#actors.get(uid);
    return actor && wholeOf(actor, this.#deps.policy);
  }

  /** Makes the pool's actor anew from its record, also one that is broken. */
  rebuild(record: PoolRecord): void {
    this.#actors.get(record.uid)?.stop();
    this.index.remove(record);
    this.#rebuilds.forget(record.uid);
    this.#host(record);
    this.#count(record.uid, false);
  }

  /** The pools whose actors threw again and again, by uid. */
  get broken(): readonly string[] {
    return this.#rebuilds.broken;
  }
  isBroken(uid: string): boolean {
    return this.#rebuilds.isBroken(uid);
  }
  /** The record of a pool, whether it has an actor or not. */
  recordOf(uid: string): PoolRecord | undefined {
    return this.get(uid)?.record ?? this.#unhosted.get(uid);
  }

  /** The pool of that name if there is one, and it has no actor now. */
  unhosted(namespace: string, name: string): PoolRecord | undefined {
    const isIt = ({ owner, ...record }: PoolRecord): boolean =>
      record.name === name && owner.namespace === namespace;
    return [...this.#unhosted.values()].find(isIt);
  }

  stop(): void {
    this.#rebuilds.stop();
  }

  /** The updateRevision of what a pool launches; none of one that is not known. */
  revisionOf(uid: string): string {
    return this.#actors.get(uid)?.getSnapshot().context.record.updateRevision ?? '';
  }

  /** An instance of a pool counts elsewhere than before; `ordered`: the pool had asked for it. */
  moved(move: Move, ordered: boolean): void {
    this.#counts.move(move);
    if (!this.#hears) return;
    this.#count(move.poolUid, ordered);
    // It was retiring when its pool was removed, and that failed.
    if (move.from === 'retiring' && move.to !== undefined && !this.#actors.has(move.poolUid))
      this.#deps.orphaned(move.poolUid);
  }

  /** All that there was is found: each pool hears of it in one, and of every move from now on. */
  begin(): void {
    this.#hears = true;
    for (const uid of this.#actors.keys()) this.#count(uid, false);
  }

  #count(uid: string, ordered: boolean): void {
    this.send(uid, {
      type: 'INSTANCE_MOVED',
      counted: this.#counts.counted(uid, this.revisionOf(uid)),
      ordered,
      now: this.#deps.clock.now(),
    });
  }

  /**
   * Reads every pool, with what its owner's quota counts, and follows what anybody changes from
   * then on.
   */
  async start(): Promise<void> {
    let restored: Promise<unknown> | undefined;
    await this.#deps.pools.watch((change) => {
      this.#learn(change);
    });
    this.#started = true;
    for (const actor of this.#actors.values()) {
      const { record } = actor.getSnapshot().context;
      const { uid, owner } = record;
      const amounts = amountsOfPool(record);
      restored = Promise.all([
        restored,
        this.#deps.coordination.restore(owner, 'pools', { name: uid, amount: 1 }),
        ...SIZED_RESOURCES.map((resource) =>
          this.#deps.coordination.restore(owner, resource, {
            name: uid,
            amount: amounts[resource],
          }),
        ),
      ]);
    }
    await restored;
  }

  /** Reads the pool uncached: what is shown of it then is no older than this call. */
  async refresh(namespace: string, name: string): Promise<void> {
    await this.#deps.pools.get(`${namespace}/${name}`);
  }

  /**
   * The same for one that the mirror doesn't show: read at most once in 250 ms, for all who miss
   * it.
   */
  async lookUp(namespace: string, name: string): Promise<PoolRecord | undefined> {
    return await this.#reads.read(`${namespace}/${name}`);
  }

  /** The record of one of the owner's, read uncached. */
  async recorded(owner: Tenant, uid: string): Promise<PoolRecord | undefined> {
    const name = this.get(uid)?.record.name;
    // One that no mirror shows is known by its uid alone.
    if (name === undefined)
      return (await this.#deps.pools.list()).find((record) => record.uid === uid);
    await this.refresh(owner.namespace, name);
    return this.get(uid)?.record;
  }

  #learn({ kind, record }: RecordChange<PoolRecord>): void {
    const known = this.#actors.get(record.uid)?.getSnapshot().context.record;
    if (kind === 'gone') {
      if (known) this.send(record.uid, { type: 'REMOVED' });
      else if (this.#unhosted.delete(record.uid)) this.#forgotten(record);
    } else if (!known) {
      if (this.#rebuilds.has(record.uid)) return void this.#unhosted.set(record.uid, record);
      if (this.#started) this.#events.created(record);
      this.#host(record);
      this.#deps.outbox.drain();
    } else if (record.revision !== known.revision) this.#renew(record);
  }

  send(uid: string, event: PoolEvent): void {
    const actor = this.#actors.get(uid);
    if (!actor) return;
    const before = actor.getSnapshot().context;
    actor.send(event);
    this.#changed(uid, actor, { before, event });
    this.#deps.outbox.drain();
  }

  replan(uid: string): void {
    const record = this.#actors.get(uid)?.getSnapshot().context.record;
    if (record) this.#renew(record);
  }

  #renew(record: PoolRecord): void {
    const { updated } = this.#counts.counted(record.uid, record.updateRevision);
    this.send(record.uid, { type: 'RECORD', record, updated, now: this.#deps.clock.now() });
  }

  /** Begins to decide for each pool of the shard. */
  lead(shard: number): void {
    this.#led.add(shard);
    for (const uid of this.#in(shard))
      this.send(uid, { type: 'LEAD', now: this.#deps.clock.now() });
  }

  follow(shard: number): void {
    this.#led.delete(shard);
    for (const uid of this.#in(shard)) this.send(uid, { type: 'FOLLOW' });
  }

  /** Writes a change of a pool's record, as SerializedWriter does. */
  async change(
    uid: string,
    change: (record: PoolRecord) => PoolRecord | Promise<PoolRecord>,
    permitted?: () => boolean,
  ): Promise<PoolRecord | undefined> {
    return await this.#writer.change(uid, change, permitted);
  }

  #host(record: PoolRecord): void {
    const { uid } = record;
    this.#unhosted.delete(uid);
    const counted = this.#counts.counted(uid, record.updateRevision);
    const actor = createActor(poolMachine, {
      input: { record, policy: this.#deps.policy, now: this.#deps.clock.now(), counted },
    });
    actor.on('*', (intent) =>
      this.#deps.outbox.put({
        name: `pool ${intent.type}`,
        of: `p${uid}`,
        lease: this.#deps.coordination.lease(shardOf(uid)) ?? LOST_LEASE,
        act: () => this.#carryOut(uid, intent),
        ...(intent.type === 'launch'
          ? {
              dropped: () => {
                this.send(uid, {
                  type: 'LAUNCHES_DROPPED',
                  count: intent.count,
                  now: this.#deps.clock.now(),
                });
              },
            }
          : {}),
      }),
    );
    // looked at after each send; unobserved it would end the process
    actor.subscribe({ error: () => undefined });
    this.#actors.set(uid, actor);
    this.index.add(record);
    actor.start();
    this.#trace(actor, { type: 'FOUND' });
    if (this.#led.has(shardOf(uid))) this.send(uid, { type: 'LEAD', now: this.#deps.clock.now() });
  }

  #trace(actor: Actor<typeof poolMachine>, event: PoolEvent | { readonly type: 'FOUND' }): void {
    const {
      value,
      context: {
        record: { uid, createdAt },
      },
    } = actor.getSnapshot();
    this.transitions.moved(uid, pathOf(value), { event, group: '', born: createdAt });
  }

  #in(shard: number): readonly string[] {
    return [...this.#actors.keys()].filter((uid) => shardOf(uid) === shard);
  }

  #changed(
    uid: string,
    actor: Actor<typeof poolMachine>,
    { before, event }: { readonly before: PoolContext; readonly event: PoolEvent },
  ): void {
    const snapshot = actor.getSnapshot();
    if (snapshot.status === 'error') {
      this.#drop(before.record);
      this.#unhosted.set(uid, before.record);
      this.#rebuilds.threw(uid, snapshot.error, {
        group: '',
        make: () => {
          this.#hostAgain(uid);
        },
      });
      return;
    }
    this.#trace(actor, event);
    const phase = phaseOf(snapshot.context, this.#deps.policy);
    const phaseBefore = phaseOf(before, this.#deps.policy);
    this.#deps.measures.moved('pool', phaseBefore, phase);
    if (phase !== phaseBefore)
      this.#deps.log.info(
        {
          entity: 'pool',
          uid,
          name: before.record.name,
          from: phaseBefore,
          to: phase,
          ...startFailureOf(snapshot.context),
        },
        'pool moved',
      );
    this.#events.changed(before, snapshot.context);
    this.#deps.arm(uid, snapshot.context.deadline);
    this.index.share(snapshot.context.record);
    this.#deps.changed(snapshot.context.record);
    if (snapshot.context.record.deleting !== false || snapshot.matches({ lifecycle: 'removed' }))
      this.#deps.ending(uid);
    if (snapshot.matches({ lifecycle: 'removed' })) {
      this.#drop(before.record);
      this.#forgotten(before.record);
    }
  }

  #drop(record: PoolRecord): void {
    this.#actors.delete(record.uid);
    this.transitions.ended(record.uid);
    this.index.remove(record);
    this.#deps.arm(record.uid, undefined);
  }

  #hostAgain(uid: string): void {
    const record = this.#unhosted.get(uid);
    if (!record) return;
    this.#host(record);
    this.#count(uid, false);
  }

  /**
   * Whoever removed it, its part of the quota goes, and its registry passwords; the leader sees to
   * it.
   */
  #forgotten(record: PoolRecord): void {
    const { uid, owner, source } = record;
    this.#events.removed(record);
    this.#rebuilds.forget(uid);
    if (!this.#led.has(shardOf(uid))) return;
    const { coordination, outbox, pullSecrets } = this.#deps;
    const act = async (): Promise<void> => {
      await coordination.release(owner, 'pools', uid);
      for (const resource of SIZED_RESOURCES) await coordination.release(owner, resource, uid);
    };
    outbox.put({ name: 'pool release quota', lease: undefined, act });
    this.#deps.reconcileLater(owner);
    if (source.overrides?.imagePullSecretConfigured)
      outbox.put({
        name: 'pool forget passwords',
        lease: undefined,
        act: () => pullSecrets?.forget({ namespace: owner.namespace, uid }),
      });
    this.#deps.orphaned(uid);
  }

  #carryOut(uid: string, intent: PoolIntent): void | Promise<void> {
    switch (intent.type) {
      case 'launch':
        return this.#launch(uid, intent.count);
      case 'trim':
        return this.#retirements.trim(uid);
      case 'renew':
        return this.#retirements.renew(uid);
      case 'end-running':
        return this.#retirements.endRunning(uid);
      case 'replace':
        return this.#retirements.replace(uid);
      case 'save-breaker':
        return this.change(uid, (record) =>
          record.updateRevision === intent.revision
            ? { ...record, breaker: intent.breaker }
            : record,
        ).then(() => undefined);
      case 'save-conditions':
        return this.change(uid, (record) => ({ ...record, conditions: intent.conditions })).then(
          () => undefined,
        );
      case 'remove':
        return this.#writer.runExclusive(uid, () => this.#remove(uid));
    }
  }

  #launch(uid: string, count: number): void {
    const record = this.#actors.get(uid)?.getSnapshot().context.record;
    if (!record) return;
    for (let i = 0; i < count; i++) {
      const now = this.#deps.clock.now();
      this.#deps.launch({ now, launchOrder: launchOrderOf(record, this.#deps.newId(), now) });
    }
  }

  async #remove(uid: string): Promise<void> {
    const record = this.#actors.get(uid)?.getSnapshot().context.record;
    if (!record) return;
    try {
      await this.#deps.pools.remove(record);
    } catch (error) {
      if (error instanceof RecordConflict) await this.#writer.readAgain(record);
      this.send(uid, { type: 'REMOVE_OUTCOME_UNKNOWN', now: this.#deps.clock.now() });
      if (!(error instanceof RecordConflict)) throw error;
    }
  }
}

/** What no replica holds: an intent that carries it is dropped. */
export const LOST_LEASE: Lease = { epoch: 0, held: () => false };

const startFailureOf = ({
  breaker: { reason, failures },
}: PoolContext): { readonly startFailure?: string; readonly startFailures?: number } =>
  reason === '' ? {} : { startFailure: reason, startFailures: failures };
