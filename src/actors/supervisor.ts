import type { Clock } from '../contracts/clock.ts';
import type { Coordination, Lease } from '../contracts/coordination.ts';
import type { History } from '../contracts/history.ts';
import type { Log } from '../contracts/log.ts';
import type { Records } from '../contracts/record-store.ts';
import { RecordConflict, type SandboxDriver } from '../contracts/sandbox-driver.ts';
import type { PoolPolicy } from '../machines/pool-arithmetic.ts';
import type { PoolEvent } from '../machines/pool-machine.ts';
import type { SandboxEvent, SandboxInput, SandboxIntent } from '../machines/sandbox-events.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { PoolRecord } from '../model/pool.ts';
import { unavailable } from '../model/refusals.ts';
import type { InstanceFact, InstanceRecord } from '../model/sandbox.ts';
import { shardOf } from '../model/shards.ts';
import type { Tenant } from '../model/tenant.ts';
import { Busy } from './busy.ts';
import { Deadlines } from './deadlines.ts';
import { NO_EVENTS, type EventSink } from './event-feed.ts';
import { OwnBuckets } from './idle-shelf.ts';
import { Outbox } from './outbox.ts';
import { Leading } from './leading.ts';
import { LOST_LEASE, PoolHost } from './pool-host.ts';
import { SandboxActors, type SandboxActor } from './sandbox-actors.ts';
import { isLeaders, sandboxEffects } from './sandbox-effects.ts';
import { countedAs, placementOf, SandboxIndex } from './sandbox-index.ts';
import { SandboxNotes } from './sandbox-notes.ts';
import { recordedAmounts, Settling } from './settling.ts';
import { shown, stateOf, type SandboxSnapshot } from './sandbox-snapshot.ts';
import { Waiters } from './waiters.ts';

export interface SupervisorDeps {
  readonly driver: SandboxDriver;
  readonly pools: Records<PoolRecord>;
  readonly history: History;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly log: Log;
  readonly policy: PoolPolicy;
  readonly newId: () => InstanceId;
  /** This replica's name among those of `coordination`; alone where it is absent. */
  readonly replica?: string;
  /** Told what happens; nobody where it is absent. */
  readonly events?: EventSink;
}

/**
 * Hosts one actor per sandbox and per pool: makes them from facts, finds them by key, carries out their intents, arms
 * their deadlines, keeps the indexes and retires them. A replica's whole memory of the truth; nothing here is saved.
 */
export class Supervisor {
  readonly index = new SandboxIndex();
  readonly pools: PoolHost;
  readonly #deps: SupervisorDeps;
  readonly #sandboxes = new Map<string, SandboxActor>();
  readonly #outbox: Outbox;
  readonly #deadlines: Deadlines;
  readonly #waiters: Waiters;
  readonly #leading: Leading;
  readonly #busy: Busy;
  readonly #ownBuckets: OwnBuckets | undefined;
  readonly #settling: Settling;
  readonly #notes: SandboxNotes | undefined;
  readonly #carryOut: ReturnType<typeof sandboxEffects>;
  readonly #actors = new SandboxActors();
  #rebuilt = 0;
  #started = false;
  #report: PoolEvent | undefined;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#ownBuckets = deps.replica === undefined ? undefined : new OwnBuckets(deps.replica, () => deps.coordination.replicas());
    this.#outbox = new Outbox(deps.log);
    this.#waiters = new Waiters(deps.clock);
    this.#busy = new Busy({ clock: deps.clock, touch: (id) => { deps.coordination.touch(id); } });
    this.#carryOut = sandboxEffects(deps);
    this.#deadlines = new Deadlines(deps.clock, (key, now) => {
      const name = key.slice(1);
      if (key.startsWith('s')) this.send(name, { type: 'DEADLINE', now });
      else this.pools.send(name, { type: 'DEADLINE', now });
    });
    this.pools = new PoolHost({
      ...deps,
      events: deps.events ?? NO_EVENTS,
      outbox: this.#outbox,
      arm: (uid, at) => this.#deadlines.arm(`p${uid}`, at),
      launch: (input) => this.#host(input),
      dismissable: (uid) => this.index.dismissable(uid),
      running: (uid) => this.index.claimedIn(uid),
      tell: (id, event) => { this.send(id, event); },
      orphaned: (uid) => { for (const id of this.index.dismissable(uid)) this.#retireIfPoolless(id); },
    });
    this.#leading = new Leading({
      leases: deps.coordination, clock: deps.clock, log: deps.log,
      caughtUp: () => deps.driver.caughtUp(),
      lead: (shard) => {
        this.pools.lead(shard);
        this.#retirePoolless(shard);
        deps.events?.lead(shard);
      },
      follow: (shard) => { this.pools.follow(shard); },
      drained: () => this.#outbox.drained(),
    });
    this.#settling = new Settling({
      quotas: deps.coordination, clock: deps.clock, log: deps.log, leads: (shard) => this.#leading.leads(shard), tenants: () => this.pools.index.owners,
      recorded: recordedAmounts({ pools: this.pools, sandbox: (id) => this.sandbox(id), fence: (id, namespace) => this.fence(id, namespace) }),
    });
    this.#notes = deps.events && new SandboxNotes({ events: deps.events, clock: deps.clock, leads: (shard) => this.#leading.leads(shard) });
  }

  /** How many actors threw and were made again from their facts. */
  get rebuilt(): number { return this.#rebuilt; }
  get size(): number { return this.#sandboxes.size; }

  /** Reads pools and instances, restores what the quotas count, then begins to decide. */
  async start(): Promise<void> {
    await this.pools.start();
    await this.#deps.driver.watch((fact) => this.#learn(fact));
    this.#started = true;
    await this.#restoreQuotas();
    await this.#leading.start();
    this.#settling.start();
  }

  /** Stops deciding, then waits for what is under way, `withinMs` at most. */
  async stop(withinMs: number): Promise<void> {
    this.#leading.stop();
    this.#deadlines.stop();
    this.#busy.stop();
    const settled = this.#settling.stop();
    let cancel = (): void => undefined;
    const over = new Promise<void>((resolve) => { cancel = this.#deps.clock.at(this.#deps.clock.now() + withinMs, resolve); });
    await Promise.race([Promise.all([this.#outbox.settled(), settled]), over]);
    cancel();
    await this.#leading.giveUp();
  }

  /** Leads nothing from now on; requests are answered as before. May be repeated. */
  standDown(): void {
    this.#leading.stop();
    this.#outbox.drained().then(() => this.#leading.giveUp())
      .catch((error: unknown) => { this.#deps.log.error({ error }, 'shards could not be given up'); });
  }

  /** The shards that this replica leads. */
  get shards(): readonly number[] { return this.#leading.shards; }

  ids(): readonly string[] { return [...this.#sandboxes.keys()]; }

  sandbox(id: string): SandboxSnapshot | undefined {
    const actor = this.#sandboxes.get(id);
    return actor && shown(actor);
  }

  /** Delivers an event; false where there is no such actor. Its intents are under way when this returns. */
  send(id: string, event: SandboxEvent): boolean {
    const actor = this.#sandboxes.get(id);
    if (!actor) return false;
    const { value, context } = actor.getSnapshot();
    const before = stateOf(value);
    actor.send(event);
    if (ACTIVITY.has(event.type)) this.#busy.note(id, actor.getSnapshot().context.working > 0);
    this.#changed(id, actor, { event: event.type, before, ordered: false });
    this.#notes?.moved({ state: before, context }, actor.getSnapshot(), event);
    this.#outbox.drain();
    return true;
  }

  /** The longest idle instance of the pool, reserved in this process until it moves or is put back. */
  takeIdle(poolUid: string): InstanceId | undefined { return this.index.takeIdle(poolUid, this.#ownBuckets?.get()); }

  /** The same, after an uncached look at what the mirror may not show yet. Refuses with `unavailable` where the truth is out of reach. */
  async findIdle(poolUid: string, namespace: string): Promise<InstanceId | undefined> {
    const facts = await this.#deps.driver.idle(poolUid, namespace).catch((error: unknown) => {
      this.#deps.log.warn({ poolUid, error }, 'idle instances could not be looked for');
      throw unavailable('whether an instance is idle can not be told now; try again');
    });
    for (const fact of facts) this.#learn(fact);
    return this.takeIdle(poolUid);
  }

  /** Waits until one of the pool's that claims of this process hold is back or gone; false, at once, where there is none. */
  async untilPutBack(poolUid: string, until: number): Promise<boolean> {
    const id = this.index.takenOf(poolUid);
    if (id === undefined) return false;
    await this.#waiters.until(id, () => !this.index.isTaken(id), until);
    return true;
  }

  putBack(id: string): void {
    this.index.putBack(id);
    this.#waiters.changed(id);
    const poolUid = this.sandbox(id)?.context.poolUid;
    if (poolUid !== undefined) this.pools.replan(poolUid);
  }

  /** Waits until the sandbox satisfies `look` (undefined: it is no more), or until the moment given. */
  async until(id: string, look: (snapshot: SandboxSnapshot | undefined) => boolean, until: number): Promise<SandboxSnapshot | undefined> {
    await this.#waiters.until(id, () => look(this.sandbox(id)), until);
    return this.sandbox(id);
  }

  /**
   * Makes sure that what is shown of the sandbox is no older than this call, unless it is good news: it runs, and nobody
   * said that it ended. Refuses with `unavailable` where the truth is out of reach.
   */
  async freshen(id: InstanceId, namespace: string, unless: 'it runs' | 'never' = 'it runs'): Promise<void> {
    const shown = this.sandbox(id);
    if (shown && !shown.context.record) return; // its birth is under way here
    if (unless === 'it runs' && shown?.status === 'Running' && !await this.#mayHaveEnded(id)) return;
    let fact: InstanceFact | undefined;
    try {
      fact = await this.#deps.driver.confirm(id, namespace);
    } catch (error) {
      this.#deps.log.warn({ id, error }, 'a sandbox could not be read');
      throw unavailable('the state of the sandbox can not be read now; try again');
    }
    if (fact) this.#learn(fact);
  }

  /**
   * The record as it stands; where it is idle no claim that was sent before lands any more. Undefined: there is none, and
   * never will be. Rejects where that can't be told.
   */
  async fence(id: InstanceId, namespace: string): Promise<InstanceRecord | undefined> {
    const { driver } = this.#deps;
    for (let attempt = 1; ; attempt++) {
      const fact = await driver.confirm(id, namespace) ?? await driver.read(id);
      this.#learn(fact);
      if (fact.record?.state !== 'idle') return fact.record;
      try {
        const record = await driver.bump(id, fact.record.revision);
        this.#learn({ ...fact, record });
        return record;
      } catch (error) {
        if (!(error instanceof RecordConflict) || attempt === MOST_FENCINGS) throw error;
      }
    }
  }

  /** Of one who may have reserved before anything shows it. */
  settleLater(tenant: Tenant): void { this.#settling.note(tenant); }

  /** Another replica ended it a moment ago, or nobody can tell. */
  async #mayHaveEnded(id: InstanceId): Promise<boolean> {
    return await this.#deps.coordination.ended(id).then((end) => end !== undefined, () => true);
  }

  /** Has whoever waits for the sandbox look again. */
  wake(id: string): void { this.#waiters.changed(id); }

  #learn(fact: InstanceFact): void {
    const now = this.#deps.clock.now();
    if (this.send(fact.id, { type: 'FACT', fact, now })) return;
    if (!fact.record) return;
    this.#host({ now, fact: { ...fact, record: fact.record } });
    this.#retireIfPoolless(fact.id);
    this.#outbox.drain();
  }

  #host(input: SandboxInput): void {
    const id = 'birth' in input ? input.birth.record.id : input.fact.id;
    const actor = this.#actors.make(input, (intent) => { this.#put(id, intent); });
    this.#sandboxes.set(id, actor);
    actor.start();
    this.#changed(id, actor, { event: 'birth' in input ? 'ORDERED' : 'FOUND', before: '', ordered: 'birth' in input });
    if ('birth' in input || this.#started) this.#notes?.note(actor.getSnapshot().context, { reason: 'Created' }, 'birth' in input);
  }

  #put(id: string, intent: SandboxIntent): void {
    if (intent.type === 'report-start') {
      const now = this.#deps.clock.now();
      this.#report = intent.outcome === 'started' ? { type: 'INSTANCE_STARTED', now } : { type: intent.outcome === 'failed' ? 'START_FAILED' : 'START_DEFERRED', reason: intent.reason, now };
      return;
    }
    const lease = isLeaders(intent) ? this.#leaseOf(id) : undefined;
    const act = async (): Promise<void> => {
      const event = await this.#carryOut(id, intent, () => lease?.held() ?? true);
      if (event) this.send(id, event);
    };
    const dropped = (): void => { this.send(id, { type: 'NOT_LEADING', now: this.#deps.clock.now() }); };
    this.#outbox.put({ name: intent.type, lease, act, dropped });
  }

  #leaseOf(id: string): Lease {
    const poolUid = this.#sandboxes.get(id)?.getSnapshot().context.poolUid;
    return (poolUid === undefined ? undefined : this.#deps.coordination.lease(shardOf(poolUid))) ?? LOST_LEASE;
  }

  #changed(id: string, actor: SandboxActor, cause: { readonly event: string; readonly before: string; readonly ordered: boolean }): void {
    const snapshot = actor.getSnapshot();
    if (snapshot.status === 'error') {
      this.#rebuild(id, snapshot.error);
      return;
    }
    const { context, state, status } = shown(actor);
    const record = context.record ?? context.birth?.record;
    if (state !== cause.before) this.#deps.log.debug({ entity: 'sandbox', id, cause: cause.event, from: cause.before, to: state }, 'sandbox moved');
    const placement = record && state !== 'completed' ? placementOf(record, { status, availableAt: context.availableAt }) : undefined;
    const from = placement ? this.index.place(placement) : this.index.remove(id);
    const to = placement && countedAs(placement);
    this.#deadlines.arm(`s${id}`, context.deadline);
    if (state === 'completed') this.#sandboxes.delete(id);
    // First how the start went, then that its place is free: else the breaker would trip one launch too late.
    const report = this.#report;
    this.#report = undefined;
    if (report) this.pools.send(context.poolUid, report);
    if (from !== to || cause.ordered) this.pools.send(context.poolUid, { type: 'INSTANCE_MOVED', from, to, ordered: cause.ordered, now: this.#deps.clock.now() });
    this.#waiters.changed(id);
  }

  /** An actor that threw is dead for good: its successor is made from what the driver sees. */
  #rebuild(id: string, error: unknown): void {
    this.#rebuilt += 1;
    const poolUid = this.#sandboxes.get(id)?.getSnapshot().context.poolUid;
    this.#deps.log.error({ entity: 'sandbox', id, error: String(error) }, 'actor threw; rebuilt from its fact');
    this.#sandboxes.delete(id);
    this.#deadlines.arm(`s${id}`, undefined);
    const from = this.index.remove(id);
    if (poolUid !== undefined && from) this.pools.send(poolUid, { type: 'INSTANCE_MOVED', from, to: undefined, ordered: false, now: this.#deps.clock.now() });
    this.#outbox.put({ name: 'rebuild', lease: undefined, act: async () => this.#learn(await this.#deps.driver.read(id)) });
    this.#waiters.changed(id);
  }

  async #restoreQuotas(): Promise<void> {
    for (const id of this.#sandboxes.keys()) {
      const claim = this.sandbox(id)?.context.record?.claim;
      if (claim) await this.#deps.coordination.restore(claim.owner, 'sandboxes', { name: id, amount: 1 });
    }
  }

  #retirePoolless(shard: number): void {
    for (const uid of this.index.poolUids()) {
      if (shardOf(uid) === shard && !this.pools.get(uid)) for (const id of this.index.dismissable(uid)) this.#retireIfPoolless(id);
    }
  }

  #retireIfPoolless(id: string): void {
    const snapshot = this.sandbox(id);
    if (!snapshot || (snapshot.status !== 'Idle' && snapshot.status !== 'Starting')) return;
    const { poolUid } = snapshot.context;
    if (!this.pools.get(poolUid) && this.#leading.leads(shardOf(poolUid))) this.send(id, { type: 'RETIRE', now: this.#deps.clock.now() });
  }
}

const MOST_FENCINGS = 4;

/** What counts as activity in a sandbox. */
const ACTIVITY: ReadonlySet<SandboxEvent['type']> = new Set<SandboxEvent['type']>(['ACTIVE', 'WORK_BEGAN', 'WORK_ENDED', 'AMENDED']);
