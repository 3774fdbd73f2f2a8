import { createActor, type SnapshotFrom } from 'xstate';
import type { RecordChange } from '../../contracts/record-store.ts';
import { phaseOf } from '../../machines/pool/arithmetic.ts';
import { isNewsThatStarts } from '../../machines/pool/decisions.ts';
import { startTroubleOf, type StartTrouble } from '../../machines/pool/start-trouble.ts';
import type { PoolContext, PoolEvent, PoolInput, PoolIntent } from '../../machines/pool/events.ts';
import { poolMachine } from '../../machines/pool/machine.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import type { PoolRecord, ReplicaSemantics } from '../../model/pools/pool.ts';
import type { Tenant } from '../../model/tenant.ts';
import { shardOf } from '../../model/shards.ts';
import { ActorHost, type ActorKind, type Change, pathOf } from '../runtime/actor-host.ts';
import type { OutboxEntry } from '../runtime/actor-runtime.ts';
import { OwnedIndex, RecordMirror } from '../runtime/record-mirror.ts';
import {
  InstanceCounts,
  type Move,
  shown,
  wholeOf,
  type PoolActorView,
  type PoolSnapshot,
} from './pool-snapshot.ts';
import { forgetPool, poolEffects, restoreQuotas } from './pool-effects.ts';
import { PoolEventRecorder } from './pool-event-recorder.ts';
import type { PoolHostDeps } from './pool-host-deps.ts';
import { StartPlaces } from './start-places.ts';

type Snapshot = SnapshotFrom<typeof poolMachine>;

export class PoolHost {
  readonly index = new OwnedIndex();
  readonly actors: ActorHost<Snapshot, PoolEvent, PoolIntent, PoolInput>;
  readonly #deps: PoolHostDeps;
  readonly #counts = new InstanceCounts();
  /** Records of pools whose actor threw and lacks a successor. */
  readonly #unhosted = new Map<string, PoolRecord>();
  #hears = false;
  /** True after the first read of the store: later pools are new. */
  #started = false;
  readonly #events: PoolEventRecorder;
  readonly #places: StartPlaces | undefined;
  readonly #mirror: RecordMirror<PoolRecord>;
  readonly #carryOut: ReturnType<typeof poolEffects>;

  constructor(deps: PoolHostDeps) {
    this.#deps = deps;
    const { places } = deps.policy.refill;
    const grant = (uid: string) => this.actors.send(uid, { type: 'PLACE', now: this.#now() });
    const { clock, outbox } = deps.runtime;
    this.#places = places && new StartPlaces(places, { clock, outbox, grant });
    this.#mirror = new RecordMirror({
      records: deps.pools,
      clock: deps.runtime.clock,
      keyOf: ({ uid }) => uid,
      storeKeyOf: ({ owner, name }) => `${owner.namespace}/${name}`,
      mostRemoved: 0,
    });
    this.#mirror.follow((change) => {
      this.#learn(change);
    });
    this.#carryOut = poolEffects({
      ...deps,
      mirror: this.#mirror,
      contextOf: (uid) => this.#context(uid),
      send: (uid, event) => {
        this.send(uid, event);
      },
      places: this.#places,
    });
    this.#events = new PoolEventRecorder({
      events: deps.events,
      clock: deps.runtime.clock,
      leads: (shard) => this.actors.leads(shard),
    });
    this.actors = new ActorHost(deps.runtime, this.#kind());
  }

  /** Whether `replicas` counts running instances too. */
  get semantics(): ReplicaSemantics {
    return this.#deps.policy.replicaSemantics;
  }

  get(uid: string): PoolSnapshot | undefined {
    const context = this.#context(uid);
    return context && shown(context, this.#deps.policy);
  }

  named(namespace: string, name: string): PoolSnapshot | undefined {
    const uid = this.index.uidOf(namespace, name);
    return uid === undefined ? undefined : this.get(uid);
  }

  ofMember(env: Pick<EnvRecord, 'uid' | 'owner'>, name: string): PoolSnapshot | undefined {
    const pool = this.named(env.owner.namespace, name);
    return pool?.record.env?.uid === env.uid ? pool : undefined;
  }

  /** Undefined if the cause is unknown, or if none fails. */
  startTrouble(uid: string): StartTrouble | undefined {
    const context = this.#context(uid);
    return context && startTroubleOf(context, this.#now());
  }

  snapshots(): readonly PoolSnapshot[] {
    return [...this.actors.keys()].flatMap((uid) => this.get(uid) ?? []);
  }

  whole(uid: string): PoolActorView | undefined {
    const snapshot = this.actors.snapshot(uid);
    return snapshot && wholeOf(snapshot, this.#now());
  }

  rebuild(record: PoolRecord): void {
    this.#unhosted.set(record.uid, record);
    this.index.remove(record);
    void this.actors.rebuild(record.uid);
  }

  recordOf(uid: string): PoolRecord | undefined {
    return this.#context(uid)?.record ?? this.#unhosted.get(uid);
  }

  unhosted(namespace: string, name: string): PoolRecord | undefined {
    const isIt = ({ owner, ...record }: PoolRecord): boolean =>
      record.name === name && owner.namespace === namespace;
    return [...this.#unhosted.values()].find(isIt);
  }

  revisionOf(uid: string): string {
    return this.#context(uid)?.record.updateRevision ?? '';
  }

  knowsToStart(uid: string, revision: string): boolean {
    const context = this.#context(uid);
    return context !== undefined && !isNewsThatStarts(context, revision);
  }

  /** `ordered`: the pool ordered the instance. */
  moved(move: Move, ordered: boolean): void {
    this.#counts.move(move);
    if (!this.#hears) return;
    this.#count(move.poolUid, ordered);
    // The instance was retiring when its pool was removed, and the retirement failed.
    if (move.from === 'retiring' && move.to !== undefined && !this.actors.has(move.poolUid))
      this.#deps.listener.orphaned(move.poolUid);
  }

  begin(): void {
    this.#hears = true;
    for (const uid of this.actors.keys()) this.#count(uid, false);
  }

  async start(): Promise<void> {
    await this.#mirror.start();
    this.#started = true;
    await Promise.all(this.snapshots().map(({ record }) => restoreQuotas(this.#deps, record)));
  }

  /** The mirror's copy is then no older than this call. */
  async refresh(namespace: string, name: string): Promise<void> {
    await this.#mirror.refresh(`${namespace}/${name}`);
  }

  /** Concurrent callers share one read per 250 ms. */
  async lookUp(namespace: string, name: string): Promise<PoolRecord | undefined> {
    return await this.#mirror.lookUp(`${namespace}/${name}`);
  }

  /** Uncached. */
  async recorded(owner: Tenant, uid: string): Promise<PoolRecord | undefined> {
    const name = this.#context(uid)?.record.name;
    // Without its name, lists all pools.
    if (name === undefined)
      return (await this.#deps.pools.list()).find((record) => record.uid === uid);
    await this.refresh(owner.namespace, name);
    return this.#context(uid)?.record;
  }

  send(uid: string, event: PoolEvent): void {
    this.actors.send(uid, event);
  }

  replan(uid: string): void {
    const record = this.#context(uid)?.record;
    if (record) this.#renew(record);
  }

  /** See SerializedWriter. */
  async change(
    uid: string,
    change: (record: PoolRecord) => PoolRecord | Promise<PoolRecord>,
    permitted?: () => boolean,
  ): Promise<PoolRecord | undefined> {
    if (!this.#context(uid)) return undefined;
    return await this.#mirror.change(uid, change, permitted);
  }

  #kind(): ActorKind<Snapshot, PoolEvent, PoolIntent, PoolInput> {
    return {
      name: 'pool',
      entity: 'pool',
      prefix: 'p',
      create: (input) => createActor(poolMachine, { input }),
      pathOf: ({ value }) => pathOf(value),
      countedAs: ({ context }) => phaseOf(context, this.#deps.policy),
      listed: (_, { context }) => ({ group: '', born: context.record.createdAt }),
      causeOf: () => '',
      isOver: ({ status }) => status === 'done',
      deadlineOf: ({ context }) => context.deadline,
      due: (uid, now) => {
        this.send(uid, { type: 'DEADLINE', now });
      },
      leading: {
        shardOf,
        lead: (now) => ({ type: 'LEAD', now }),
        follow: { type: 'FOLLOW' },
      },
      intent: (uid, intent) => this.#entry(uid, intent),
      changed: (uid, change) => {
        this.#changed(uid, change);
      },
      threw: (uid, last) => {
        this.#places?.settle(uid, 0);
        if (last) this.#unhost(last.context.record);
      },
      remake: (uid) => {
        const record = this.#unhosted.get(uid);
        if (!record) return;
        this.#host(record);
        this.#count(uid, false);
      },
    };
  }

  #now(): number {
    return this.#deps.runtime.clock.now();
  }

  #context(uid: string): PoolContext | undefined {
    return this.actors.snapshot(uid)?.context;
  }

  #count(uid: string, ordered: boolean): void {
    this.send(uid, {
      type: 'INSTANCE_MOVED',
      counted: this.#counts.counted(uid, this.revisionOf(uid)),
      ordered,
      now: this.#now(),
    });
  }

  #learn({ kind, record }: RecordChange<PoolRecord>): void {
    const known = this.#context(record.uid)?.record;
    if (kind === 'gone') {
      if (known) this.send(record.uid, { type: 'REMOVED' });
      else if (this.#unhosted.delete(record.uid)) {
        this.actors.rebuilds.forget(record.uid);
        this.#forget(record);
      }
    } else if (!known) {
      if (this.actors.rebuilds.has(record.uid)) return void this.#unhosted.set(record.uid, record);
      if (this.#started) this.#events.created(record);
      this.#host(record);
      this.#deps.runtime.outbox.drain();
    } else if (record.revision !== known.revision) this.#renew(record);
  }

  #renew(record: PoolRecord): void {
    const { updated } = this.#counts.counted(record.uid, record.updateRevision);
    this.send(record.uid, { type: 'RECORD', record, updated, now: this.#now() });
  }

  #host(record: PoolRecord): void {
    const { uid } = record;
    this.#unhosted.delete(uid);
    this.index.add(record);
    const made = this.actors.make(uid, {
      record,
      policy: this.#deps.policy,
      now: this.#now(),
      counted: this.#counts.counted(uid, record.updateRevision),
    });
    if (!made) this.#unhost(record);
  }

  #unhost(record: PoolRecord): void {
    this.index.remove(record);
    this.#unhosted.set(record.uid, record);
  }

  #entry(uid: string, intent: PoolIntent): Omit<OutboxEntry, 'of'> {
    return {
      name: `pool ${intent.type}`,
      lease: this.#deps.runtime.leaseOf(shardOf(uid)),
      act: () => this.#carryOut(uid, intent),
      dropped:
        intent.type === 'launch'
          ? () => {
              this.send(uid, {
                type: 'LAUNCHES_DROPPED',
                count: intent.count,
                now: this.#now(),
              });
            }
          : undefined,
    };
  }

  #changed(uid: string, change: Change<Snapshot, PoolEvent>): void {
    const { before, after, event } = change;
    const isClaimOrEnd =
      event.type === 'INSTANCE_MOVED' && before && startAlike(before.context, after.context);
    if (!isClaimOrEnd) this.#places?.changed(uid, change);
    if (!before) return;
    const { context } = after;
    this.#logPhase(before.context, context);
    this.#events.changed(before.context, context);
    this.index.share(context.record);
    this.#deps.listener.changed(context.record);
    const isOver = after.status === 'done';
    if (context.record.deleting !== false || isOver) this.#deps.listener.ending(uid);
    if (!isOver) return;
    this.index.remove(before.context.record);
    this.#forget(before.context.record);
  }

  #logPhase(before: PoolContext, context: PoolContext): void {
    const { policy, runtime } = this.#deps;
    const [from, to] = [phaseOf(before, policy), phaseOf(context, policy)];
    if (from === to) return;
    const { uid, name } = context.record;
    const { reason, failures } = context.breaker;
    runtime.log.info(
      {
        entity: 'pool',
        uid,
        name,
        from,
        to,
        ...(reason === '' ? {} : { startFailure: reason, startFailures: failures }),
      },
      'pool-moved',
    );
  }

  #forget(record: PoolRecord): void {
    this.#events.removed(record);
    if (this.actors.leads(shardOf(record.uid))) forgetPool(this.#deps, record);
  }
}

const startAlike = (before: PoolContext, after: PoolContext): boolean =>
  before.counts.starting === after.counts.starting && before.ordered === after.ordered;
