import type { SandboxEvent } from '../../machines/sandbox/events.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { InstanceRecord } from '../../model/sandbox.ts';
import type { Tenant } from '../../model/tenant.ts';
import { ActorRuntime } from '../runtime/actor-runtime.ts';
import { ShardLeadership } from '../runtime/shard-leadership.ts';
import { Takeover } from './takeover.ts';
import { PoolHost } from '../pool/pool-host.ts';
import { EventRecorder } from './sandbox-moves.ts';
import { ClaimLaunches } from './claim-launches.ts';
import { IdleInstances, OwnBuckets } from './idle-instances.ts';
import {
  recordedAmounts,
  ReservationReconciler,
  restoreClaims,
  shownAmounts,
} from './reservation-reconciler.ts';
import { RetirementLimiter } from './retirement-limiter.ts';
import { SandboxHost } from './sandbox-host.ts';
import { SandboxPauses } from './sandbox-pauses.ts';
import { SandboxIndex } from './sandbox-index.ts';
import type { SandboxSnapshot } from './sandbox-snapshot.ts';
import { SandboxTruth } from './sandbox-truth.ts';
import type { SupervisorDeps, SupervisorParts } from './supervisor-deps.ts';
import { Waiters } from '../runtime/actor-host.ts';

const PLAN_PREFIX = 'r';

/** Composes the deciding parts of one replica. Its state is only in memory. */
export class Supervisor {
  readonly index = new SandboxIndex();
  readonly runtime: ActorRuntime;
  readonly pools: PoolHost;
  readonly idle: IdleInstances;
  readonly pauses: SandboxPauses;
  readonly launches: ClaimLaunches;
  readonly #deps: SupervisorParts;
  readonly #sandboxes: SandboxHost;
  readonly #waiters: Waiters;
  readonly #leadership: ShardLeadership;
  readonly #reconciler: ReservationReconciler;
  readonly #truth: SandboxTruth;
  readonly #takeover: Takeover;

  constructor({ watchers, sharding, passwords, ...rest }: SupervisorDeps) {
    const deps: SupervisorParts = { ...rest, ...watchers, ...sharding, ...passwords };
    this.#deps = deps;
    this.runtime = new ActorRuntime({ ...deps, leases: deps.coordination });
    this.#waiters = new Waiters(deps.clock);
    const retirements = this.#limiter();
    this.#truth = new SandboxTruth({
      ...deps,
      shown: (id) => this.sandbox(id),
      learn: (fact) => {
        this.#sandboxes.learn(fact);
      },
    });
    this.#sandboxes = this.#sandboxHost(retirements);
    this.idle = this.#idleInstances();
    this.pools = this.#poolHost(retirements);
    this.pauses = new SandboxPauses({
      ...deps,
      sandbox: (id) => this.sandbox(id),
      send: (id, event) => this.send(id, event),
      refresh: (id, namespace) => this.refresh(id, namespace, 'never'),
    });
    this.launches = new ClaimLaunches({
      ...deps,
      launch: (input) => {
        this.#sandboxes.launch(input);
        this.runtime.outbox.drain();
      },
      supervisor: this,
    });
    this.#takeover = this.#takeoverOf(retirements);
    this.#leadership = this.#leadershipOf();
    this.#reconciler = this.#reconcilerOf();
    this.runtime.onDue(PLAN_PREFIX, (uid) => {
      this.#plan(uid);
    });
  }

  get actors(): SandboxHost['actors'] {
    return this.#sandboxes.actors;
  }

  /** Restores quota usage before it begins to decide. */
  async start(): Promise<void> {
    await this.pools.start();
    await this.#deps.driver.watch((fact) => {
      this.#sandboxes.learn(fact);
    });
    this.#sandboxes.begin();
    this.pools.begin();
    await restoreClaims(this.actors, this.#deps.coordination);
    await this.#leadership.start();
    this.#reconciler.start();
  }

  async stop(withinMs: number): Promise<void> {
    for (const waiting of [this.idle.lines, this.launches]) waiting.stop();
    this.#leadership.stop();
    for (const part of [this.runtime, this.actors, this.pools.actors]) part.stop();
    const reconciled = this.#reconciler.stop();
    let cancel = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      cancel = this.#deps.clock.at(this.#deps.clock.now() + withinMs, resolve);
    });
    await Promise.race([Promise.all([this.runtime.outbox.settled(), reconciled]), over]);
    cancel();
    await this.#leadership.giveUp();
  }

  /** Still answers requests. May be repeated. */
  standDown(): void {
    this.#leadership.pause();
  }

  standUp(): void {
    this.#leadership.resume();
  }

  get shards(): readonly number[] {
    return this.#leadership.shards;
  }

  ids(): readonly string[] {
    return [...this.actors.keys()];
  }

  sandbox(id: string): SandboxSnapshot | undefined {
    return this.#sandboxes.get(id);
  }

  /** False if there is no such actor. Starts its intents before it returns. */
  send(id: string, event: SandboxEvent): boolean {
    return this.actors.send(id, event);
  }

  /** `look` gets undefined after the actor's end. */
  async until(
    id: string,
    look: (snapshot: SandboxSnapshot | undefined) => boolean,
    until: number,
  ): Promise<SandboxSnapshot | undefined> {
    await this.#waiters.until(id, () => look(this.sandbox(id)), until);
    return this.sandbox(id);
  }

  refresh(
    id: InstanceId,
    namespace: string,
    unless: 'it runs' | 'never' = 'it runs',
  ): Promise<void> {
    return this.#truth.refresh(id, namespace, unless);
  }

  fence(id: InstanceId, namespace: string): Promise<InstanceRecord | undefined> {
    return this.#truth.fence(id, namespace);
  }

  refreshClaimsByKey(markKey: string, namespace: string): Promise<void> {
    return this.#truth.refreshClaimsByKey(markKey, namespace);
  }

  /** For a reservation that may not show in a record yet. */
  reconcileLater(tenant: Tenant): void {
    this.#reconciler.note(tenant);
  }

  rebuild(id: InstanceId): ReturnType<SandboxHost['rebuild']> {
    return this.#sandboxes.rebuild(id);
  }

  wake(id: string): void {
    this.#waiters.changed(id);
  }

  #leads(shard: number): boolean {
    return this.#leadership.leads(shard);
  }

  #plan(poolUid: string): void {
    if (this.pools.actors.has(poolUid)) this.pools.replan(poolUid);
    else this.#takeover.retirePoolless(poolUid);
  }

  readonly #planAt = (poolUid: string, at: number): void => {
    this.runtime.arm(PLAN_PREFIX, poolUid, at);
  };

  #limiter(): RetirementLimiter {
    return new RetirementLimiter({
      clock: this.#deps.clock,
      goOn: (uid) => {
        this.#plan(uid);
      },
      goOnAt: this.#planAt,
      namespaceOf: (uid) => this.pools.get(uid)?.record.owner.namespace,
    });
  }

  #sandboxHost(retirements: RetirementLimiter): SandboxHost {
    const { events, clock, participant } = this.#deps;
    return new SandboxHost({
      ...this.#deps,
      runtime: this.runtime,
      participant,
      shared: { index: this.index, waiters: this.#waiters, retirements },
      events: events && new EventRecorder({ events, clock, leads: (shard) => this.#leads(shard) }),
      leads: (shard) => this.#leads(shard),
      parts: () => this,
      listener: {
        found: (poolUid) => this.#takeover.retirePoolless(poolUid),
        ended: (id) => this.#truth.ended(id),
        startFailed: (...of) => this.launches.failed(...of),
      },
    });
  }

  #idleInstances(): IdleInstances {
    const { replica, coordination } = this.#deps;
    const own =
      replica === undefined ? undefined : new OwnBuckets(replica, () => coordination.replicas());
    return new IdleInstances({
      ...this.#deps,
      index: this.index,
      waiters: this.#waiters,
      revisionOf: (poolUid) => this.pools.revisionOf(poolUid),
      ownBuckets: () => own?.get(),
      learn: (fact) => this.#truth.learn(fact),
      freed: (poolUid) => this.pools.replan(poolUid),
    });
  }

  #poolHost(retirements: RetirementLimiter): PoolHost {
    const { participant, events, newId } = this.#deps;
    return new PoolHost({
      ...this.#deps,
      runtime: this.runtime,
      events,
      instances: {
        index: this.index,
        retirements,
        newId,
        launch: (input) => this.#sandboxes.launch(input),
        tell: (id, event) => this.send(id, event),
      },
      listener: {
        changed: (record) => {
          participant?.poolChanged?.(record);
        },
        ending: (uid) => {
          this.idle.lines.end(uid);
          this.launches.endOf(uid);
        },
        orphaned: (uid) => this.#takeover.retirePoolless(uid),
      },
      planAt: this.#planAt,
      reconcileLater: (owner) => {
        this.reconcileLater(owner);
      },
    });
  }

  #takeoverOf(retirements: RetirementLimiter): Takeover {
    const { clock, log, driver, pools, participant } = this.#deps;
    return new Takeover({
      clock,
      log,
      pools: this.pools,
      index: this.index,
      mirrors: [
        () => driver.caughtUp(),
        () => pools.caughtUp(),
        async () => {
          await participant?.caughtUp?.();
        },
      ],
      leads: (shard) => this.#leads(shard),
      tell: (id) => {
        this.send(id, { type: 'LEADING', now: clock.now() });
      },
      retire: (id) => this.send(id, { type: 'RETIRE', now: clock.now() }),
      retirements,
      lookAt: this.#planAt,
    });
  }

  #leadershipOf(): ShardLeadership {
    const { coordination, clock, log, events, participant } = this.#deps;
    return new ShardLeadership({
      leases: coordination,
      clock,
      log,
      caughtUp: () => this.#takeover.caughtUp(),
      lead: (shard) => {
        this.#takeover.begin(shard, () => {
          this.pools.actors.lead(shard);
        });
        events?.lead(shard);
        participant?.onShardAcquired(shard);
      },
      follow: (shard) => {
        this.pools.actors.follow(shard);
        participant?.onShardReleased(shard);
      },
      drained: () => this.runtime.outbox.drained(),
    });
  }

  #reconcilerOf(): ReservationReconciler {
    const { coordination, clock, log, isEnv, pullSecrets } = this.#deps;
    return new ReservationReconciler({
      quotas: coordination,
      clock,
      log,
      leads: (shard) => this.#leads(shard),
      tenants: () => this.pools.index.owners,
      recorded: recordedAmounts({
        pools: this.pools,
        sandbox: (id) => this.sandbox(id),
        fence: (id, namespace) => this.fence(id, namespace),
      }),
      shown: shownAmounts({ pools: this.pools, index: this.index }),
      unmade: async ({ namespace }, uid) => {
        if (!(await isEnv?.(uid))) await pullSecrets?.forget({ namespace, uid });
      },
    });
  }
}
