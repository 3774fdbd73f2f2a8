import type { Lease } from '../../contracts/coordination.ts';
import { NO_METRICS } from '../../contracts/metrics.ts';
import type { PoolEvent } from '../../machines/pool/events.ts';
import type { SandboxEvent, SandboxInput, SandboxIntent } from '../../machines/sandbox/events.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { PendingIntent, RebuildOutcome } from '../../model/inspection.ts';
import type { InstanceFact, InstanceRecord } from '../../model/sandbox.ts';
import { shardOf } from '../../model/shards.ts';
import type { Tenant } from '../../model/tenant.ts';
import { publishActivity } from './activity.ts';
import { ActorMeasures } from '../runtime/actor-measures.ts';
import { TransitionHistory } from '../runtime/transition-history.ts';
import { Deadlines } from '../runtime/deadlines.ts';
import { RetirementLimiter } from './retirement-limiter.ts';
import { NO_EVENTS } from '../runtime/event-feed.ts';
import { IdleInstances } from './idle-instances.ts';
import { OwnBuckets } from './idle-set.ts';
import { Outbox } from '../runtime/outbox.ts';
import { ShardLeadership } from '../runtime/shard-leadership.ts';
import { countedAs, placementOf } from './placement.ts';
import { LOST_LEASE, PoolHost } from '../pool/pool-host.ts';
import { Rebuilds } from '../runtime/rebuilds.ts';
import { SandboxActors, type SandboxActor } from './sandbox-actors.ts';
import { isLeaders, sandboxEffects, startReport } from './sandbox-effects.ts';
import { SandboxIndex } from './sandbox-index.ts';
import { EventRecorder } from './event-recorder.ts';
import { recordedAmounts, ReservationReconciler, shownAmounts } from './reservation-reconciler.ts';
import { recordIn, shown, stateOf, type SandboxSnapshot } from './sandbox-snapshot.ts';
import { sandboxCauseOf, type SandboxHappened } from './sandbox-causes.ts';
import { SandboxTruth } from './sandbox-truth.ts';
import type { SupervisorDeps } from './supervisor-deps.ts';
import { Takeover } from '../runtime/takeover.ts';
import { Waiters } from './waiters.ts';

/**
 * Hosts one actor per sandbox and per pool: makes them from facts, finds them by key, carries out
 * their intents, arms their deadlines, keeps the indexes and retires them. A replica's whole memory
 * of the truth; nothing here is saved.
 */
export class Supervisor {
  readonly index = new SandboxIndex();
  readonly pools: PoolHost;
  readonly idle: IdleInstances;
  readonly transitions: TransitionHistory<SandboxHappened>;
  readonly #deps: SupervisorDeps;
  readonly #sandboxes = new Map<string, SandboxActor>();
  readonly #outbox: Outbox;
  readonly #measures: ActorMeasures;
  readonly #deadlines: Deadlines;
  readonly #waiters: Waiters;
  readonly #leading: ShardLeadership;
  readonly #retirements: RetirementLimiter;
  readonly #reconciler: ReservationReconciler;
  readonly #notes: EventRecorder | undefined;
  readonly #carryOut: ReturnType<typeof sandboxEffects>;
  readonly #actors = new SandboxActors();
  readonly #truth: SandboxTruth;
  readonly #takeover: Takeover;
  /** The sandboxes whose actors threw. */
  readonly rebuilds: Rebuilds;
  #started = false;
  #report: PoolEvent | undefined;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#outbox = new Outbox(deps.log);
    this.#measures = new ActorMeasures(deps.metrics ?? NO_METRICS);
    this.transitions = new TransitionHistory({
      kind: 'sandbox',
      clock: deps.clock,
      log: deps.log,
      causeOf: sandboxCauseOf,
    });
    this.rebuilds = new Rebuilds({
      ...deps,
      entity: 'sandbox',
      outbox: this.#outbox,
      measures: this.#measures,
      transitions: this.transitions,
    });
    this.#truth = new SandboxTruth({
      ...deps,
      shown: (id) => this.sandbox(id),
      learn: (fact) => {
        this.#learn(fact);
      },
    });
    this.#waiters = new Waiters(deps.clock);
    const own =
      deps.replica === undefined
        ? undefined
        : new OwnBuckets(deps.replica, () => deps.coordination.replicas());
    this.idle = new IdleInstances({
      ...deps,
      index: this.index,
      waiters: this.#waiters,
      revisionOf: (poolUid) => this.pools.revisionOf(poolUid),
      ownBuckets: () => own?.get(),
      learn: (fact) => {
        this.#truth.learn(fact);
      },
      freed: (poolUid) => {
        this.pools.replan(poolUid);
      },
    });
    this.#carryOut = sandboxEffects(deps);
    const plan = (uid: string): void => {
      if (this.pools.get(uid)) this.pools.replan(uid);
      else this.#takeover.retirePoolless(uid);
    };
    this.#deadlines = new Deadlines(deps.clock, (key, now, at) => {
      this.#measures.late(now - at);
      const name = key.slice(1);
      if (key.startsWith('s')) this.send(name, { type: 'DEADLINE', now });
      else if (key.startsWith('r')) plan(name);
      else this.pools.send(name, { type: 'DEADLINE', now });
    });
    const planAt = (uid: string, at: number): void => {
      this.#deadlines.arm(`r${uid}`, at);
    };
    this.#retirements = new RetirementLimiter({
      clock: deps.clock,
      goOn: plan,
      goOnAt: planAt,
      namespaceOf: (uid) => this.pools.get(uid)?.record.owner.namespace,
    });
    this.pools = new PoolHost({
      ...deps,
      events: deps.events ?? NO_EVENTS,
      outbox: this.#outbox,
      measures: this.#measures,
      retirements: this.#retirements,
      instances: this.index,
      planAt,
      arm: (uid, at) => this.#deadlines.arm(`p${uid}`, at),
      launch: (input) => this.#host(input),
      changed: (record) => {
        deps.alongside?.poolChanged?.(record);
      },
      tell: (id, event) => this.send(id, event),
      ending: (uid) => {
        this.idle.lines.end(uid);
      },
      orphaned: (uid) => {
        this.#takeover.retirePoolless(uid);
      },
      reconcileLater: (owner) => {
        this.#reconciler.note(owner);
      },
    });
    this.#takeover = new Takeover({
      clock: deps.clock,
      log: deps.log,
      pools: this.pools,
      index: this.index,
      mirrors: [
        () => deps.driver.caughtUp(),
        () => deps.pools.caughtUp(),
        async () => {
          await deps.alongside?.caughtUp?.();
        },
      ],
      leads: (shard) => this.#leading.leads(shard),
      tell: (id) => {
        this.send(id, { type: 'LEADING', now: deps.clock.now() });
      },
      retire: (id) => this.send(id, { type: 'RETIRE', now: deps.clock.now() }),
      retirements: this.#retirements,
      lookAt: planAt,
    });
    this.#leading = new ShardLeadership({
      leases: deps.coordination,
      clock: deps.clock,
      log: deps.log,
      caughtUp: () => this.#takeover.caughtUp(),
      lead: (shard) => {
        this.#takeover.begin(shard, () => {
          this.pools.lead(shard);
        });
        deps.events?.lead(shard);
        deps.alongside?.onShardAcquired(shard);
      },
      follow: (shard) => {
        this.pools.follow(shard);
        deps.alongside?.onShardReleased(shard);
      },
      drained: () => this.#drained(),
    });
    this.#reconciler = new ReservationReconciler({
      quotas: deps.coordination,
      clock: deps.clock,
      log: deps.log,
      leads: (shard) => this.#leading.leads(shard),
      tenants: () => this.pools.index.owners,
      recorded: recordedAmounts({
        pools: this.pools,
        sandbox: (id) => this.sandbox(id),
        fence: (id, namespace) => this.fence(id, namespace),
      }),
      shown: shownAmounts({ pools: this.pools, index: this.index }),
      unmade: async ({ namespace }, uid) => {
        if (!(await deps.isEnv?.(uid))) await deps.pullSecrets?.forget({ namespace, uid });
      },
    });
    this.#notes =
      deps.events &&
      new EventRecorder({
        events: deps.events,
        clock: deps.clock,
        leads: (shard) => this.#leading.leads(shard),
      });
  }

  get size(): number {
    return this.#sandboxes.size;
  }
  get outbox(): Pick<Outbox, 'underWay' | 'oldestMs' | 'dropped' | 'report'> {
    return this.#outbox;
  }

  /** Reads pools and instances, restores what the quotas count, then begins to decide. */
  async start(): Promise<void> {
    await this.pools.start();
    await this.#deps.driver.watch((fact) => this.#learn(fact));
    this.#started = true;
    this.pools.begin();
    await this.#restoreQuotas();
    await this.#leading.start();
    this.#reconciler.start();
  }

  /** Stops deciding, then waits for what is under way, `withinMs` at most. */
  async stop(withinMs: number): Promise<void> {
    this.idle.lines.stop();
    this.#leading.stop();
    for (const part of [this.#deadlines, this.rebuilds, this.pools]) part.stop();
    const settled = this.#reconciler.stop();
    let cancel = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      cancel = this.#deps.clock.at(this.#deps.clock.now() + withinMs, resolve);
    });
    await Promise.race([
      Promise.all([this.#outbox.settled(), settled, this.#deps.alongside?.drained()]),
      over,
    ]);
    cancel();
    await this.#leading.giveUp();
  }

  /** Leads nothing from now on; requests are answered as before. May be repeated. */
  standDown(): void {
    this.#leading.pause();
  }

  /** Leads again, once what it led has been given up. */
  standUp(): void {
    this.#leading.resume();
  }

  /** The shards that this replica leads. */
  get shards(): readonly number[] {
    return this.#leading.shards;
  }

  /** How many deadlines are armed, and when the next one is due (ms since the epoch). */
  get armed(): { readonly count: number; readonly next?: number } {
    return this.#deadlines.armed;
  }

  ids(): readonly string[] {
    return [...this.#sandboxes.keys()];
  }

  sandbox(id: string): SandboxSnapshot | undefined {
    const actor = this.#sandboxes.get(id);
    return actor && shown(actor);
  }

  /**
   * Delivers an event; false where there is no such actor. Its intents are under way when this
   * returns.
   */
  send(id: string, event: SandboxEvent): boolean {
    const actor = this.#sandboxes.get(id);
    if (!actor) return false;
    const { value, context } = actor.getSnapshot();
    const before = stateOf(value);
    actor.send(event);
    publishActivity(this.#deps.coordination, {
      event,
      before: context,
      after: actor.getSnapshot().context,
    });
    this.#changed(id, actor, { event, before, ordered: false });
    this.#notes?.moved({ state: before, context }, actor.getSnapshot(), event);
    this.#outbox.drain();
    return true;
  }

  /**
   * Waits until the sandbox satisfies `look` (undefined: it is no more), or until the moment given.
   */
  async until(
    id: string,
    look: (snapshot: SandboxSnapshot | undefined) => boolean,
    until: number,
  ): Promise<SandboxSnapshot | undefined> {
    await this.#waiters.until(id, () => look(this.sandbox(id)), until);
    return this.sandbox(id);
  }

  /** See SandboxTruth. */
  refresh(
    id: InstanceId,
    namespace: string,
    unless: 'it runs' | 'never' = 'it runs',
  ): Promise<void> {
    return this.#truth.refresh(id, namespace, unless);
  }

  /** See SandboxTruth. */
  fence(id: InstanceId, namespace: string): Promise<InstanceRecord | undefined> {
    return this.#truth.fence(id, namespace);
  }

  /** See SandboxTruth. */
  refreshClaimsByKey(markKey: string, namespace: string): Promise<void> {
    return this.#truth.refreshClaimsByKey(markKey, namespace);
  }

  /** Of one who may have reserved before anything shows it. */
  reconcileLater(tenant: Tenant): void {
    this.#reconciler.note(tenant);
  }

  async #drained(): Promise<void> {
    await Promise.all([this.#outbox.drained(), this.#deps.alongside?.drained()]);
  }

  /** What the sandbox asked for, and nobody has answered yet. */
  pendingOf(id: string): readonly PendingIntent[] {
    return this.#outbox.pendingOf(`s${id}`);
  }
  pendingOfPool(uid: string): readonly PendingIntent[] {
    return this.#outbox.pendingOf(`p${uid}`);
  }

  /**
   * Makes the sandbox's actor anew from what the driver sees. Not while an answer is awaited that
   * its successor would not know, or a claim holds it.
   */
  async rebuild(id: InstanceId): Promise<RebuildOutcome> {
    if (this.#isBusy(id)) return 'busy';
    const fact = await this.#deps.driver.read(id);
    if (!this.#sandboxes.has(id) && !this.rebuilds.has(id)) return 'unknown';
    if (this.#isBusy(id)) return 'busy';
    this.rebuilds.forget(id);
    this.#learn({ ...fact, afresh: true });
    this.#outbox.drain();
    return 'rebuilt';
  }

  #isBusy(id: string): boolean {
    return this.pendingOf(id).length > 0 || this.index.isHeld(id);
  }

  /** Has whoever waits for the sandbox look again. */
  wake(id: string): void {
    this.#waiters.changed(id);
  }

  #learn(fact: InstanceFact): void {
    const now = this.#deps.clock.now();
    const actor = this.#sandboxes.get(fact.id);
    if (actor && fact.record && fact.afresh && !this.#isBusy(fact.id)) {
      const { working } = actor.getSnapshot().context;
      this.#actors.drop(actor);
      this.#make({ now, fact: { ...fact, record: fact.record } });
      for (let begun = 0; begun < working; begun++) this.send(fact.id, { type: 'WORK_BEGAN', now });
      this.#outbox.drain();
      return;
    }
    if (this.send(fact.id, { type: 'FACT', fact, now })) return;
    if (!fact.record) this.rebuilds.forget(fact.id);
    if (!fact.record || this.rebuilds.has(fact.id)) return;
    this.#host({ now, fact: { ...fact, record: fact.record } });
    this.#takeover.retirePoolless(fact.record.poolUid);
    this.#outbox.drain();
  }

  #host(input: SandboxInput): void {
    const actor = this.#make(input);
    if ('launchOrder' in input || this.#started)
      this.#notes?.record(
        actor.getSnapshot().context,
        { reason: 'Created' },
        { done: 'launchOrder' in input },
      );
  }

  #make(input: SandboxInput): SandboxActor {
    const id = 'launchOrder' in input ? input.launchOrder.record.id : input.fact.id;
    const actor = this.#actors.make(input, (intent) => {
      this.#put(id, intent);
    });
    this.#sandboxes.set(id, actor);
    actor.start();
    this.#changed(id, actor, {
      event: { type: 'launchOrder' in input ? 'ORDERED' : 'FOUND' },
      before: '',
      ordered: 'launchOrder' in input,
    });
    return actor;
  }

  #put(id: string, intent: SandboxIntent): void {
    if (intent.type === 'report-start') {
      const context = this.#sandboxes.get(id)?.getSnapshot().context;
      this.#report =
        context &&
        startReport(intent, recordIn(context)?.updateRevision ?? '', this.#deps.clock.now());
      return;
    }
    const lease = isLeaders(intent) ? this.#leaseOf(id) : undefined;
    const act = async (): Promise<void> => {
      const event = await this.#carryOut(id, intent, () => lease?.held() ?? true);
      if (event) this.send(id, event);
    };
    const dropped = (): void => {
      this.send(id, { type: 'NOT_LEADING', now: this.#deps.clock.now() });
    };
    this.#outbox.put({ name: intent.type, of: `s${id}`, lease, act, dropped });
  }

  #leaseOf(id: string): Lease {
    const poolUid = this.#sandboxes.get(id)?.getSnapshot().context.poolUid;
    return (
      (poolUid === undefined ? undefined : this.#deps.coordination.lease(shardOf(poolUid))) ??
      LOST_LEASE
    );
  }

  #changed(
    id: string,
    actor: SandboxActor,
    cause: { readonly event: SandboxHappened; readonly before: string; readonly ordered: boolean },
  ): void {
    const snapshot = actor.getSnapshot();
    if (snapshot.status === 'error') return this.#rebuild(id, actor);
    const { context, state, status, path } = shown(actor);
    const record = recordIn(context);
    this.#measures.moved('sandbox', cause.before, state);
    this.transitions.moved(id, path, {
      event: cause.event,
      group: context.poolUid,
      born: record?.createdAt ?? 0,
    });
    const placement =
      record && state !== 'completed' ? placementOf(record, status, context) : undefined;
    const earlier = placement ? this.index.place(placement) : this.index.remove(id);
    const revision = (placement ?? earlier)?.updateRevision;
    const [from, to] = [earlier && countedAs(earlier), placement && countedAs(placement)];
    this.#deadlines.arm(`s${id}`, context.deadline);
    if (state === 'completed') {
      this.#sandboxes.delete(id);
      this.#truth.ended(id);
      this.transitions.ended(id);
      if (context.working > 0) this.#deps.coordination.work(id, false);
    }
    // What its pool hears below may tell it to end at once.
    this.#retirements.moved(context.poolUid, id, path);
    // First how the start went, then that its place is free: else the breaker would trip one launch too
    // late.
    const report = this.#report;
    this.#report = undefined;
    if (report && this.#leading.leads(shardOf(context.poolUid)))
      this.#measures.start(report, cause.event.type);
    if (report) this.pools.send(context.poolUid, report);
    if (revision !== undefined && (from !== to || cause.ordered))
      this.pools.moved({ poolUid: context.poolUid, revision, from, to }, cause.ordered);
    // Its record came to be known while this replica leads, and was not written by it.
    if (
      context.unlaunched &&
      path === 'starting.booting' &&
      this.#leading.leads(shardOf(context.poolUid))
    ) {
      this.#outbox.put({
        name: 'lead',
        of: `s${id}`,
        lease: undefined,
        act: () => {
          this.send(id, { type: 'LEADING', now: this.#deps.clock.now() });
        },
      });
    }
    this.#waiters.changed(id);
    if (
      from === 'starting' &&
      to === 'idle' &&
      record &&
      this.#leading.leads(shardOf(context.poolUid))
    )
      this.#measures.ready(this.#deps.clock.now() - record.createdAt);
    if (to === 'idle' && from !== 'idle') this.idle.lines.turnedIdle(context.poolUid);
    if (to === 'running' && from !== 'running' && this.#started)
      this.#deps.alongside?.claimed?.(context.poolUid, this.index.idleIn(context.poolUid) === 0);
    if (report && report.type !== 'INSTANCE_STARTED')
      this.#deps.alongside?.startFailed?.(context.poolUid);
  }

  /** An actor that threw is dead for good: its successor is made from what the driver sees. */
  #rebuild(id: string, actor: SandboxActor): void {
    const { error, context } = actor.getSnapshot();
    this.#sandboxes.delete(id);
    this.transitions.ended(id);
    this.#deadlines.arm(`s${id}`, undefined);
    const earlier = this.index.remove(id);
    this.#retirements.moved(earlier?.poolUid ?? '', id, '');
    if (earlier)
      this.pools.moved(
        {
          poolUid: earlier.poolUid,
          revision: earlier.updateRevision,
          from: countedAs(earlier),
          to: undefined,
        },
        false,
      );
    this.rebuilds.threw(id, error, {
      group: context.poolUid,
      make: async () => {
        if (this.pendingOf(id).length > 0)
          throw new Error('an answer is awaited that the new one would not know');
        this.#learn(await this.#deps.driver.read(id));
      },
    });
    this.#waiters.changed(id);
  }

  async #restoreQuotas(): Promise<void> {
    for (const [id, actor] of this.#sandboxes) {
      const claim = actor.getSnapshot().context.record?.claim;
      if (claim)
        await this.#deps.coordination.restore(claim.owner, 'sandboxes', { name: id, amount: 1 });
    }
  }
}
