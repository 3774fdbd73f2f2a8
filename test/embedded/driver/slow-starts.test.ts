import { expect } from 'chai';
import { v7 } from 'uuid';
import { EventFeed } from '../../../src/actors/runtime/event-feed.ts';
import { Supervisor } from '../../../src/actors/sandbox/supervisor.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';
import type { InstanceId } from '../../../src/model/identifiers.ts';
import { aPool } from '../../support/builders/a-pool.ts';
import { execProbe } from '../../support/builders/a-probe.ts';
import { aDefinition } from '../../support/builders/instance-orders.ts';
import { aCoordination } from '../../support/fakes/a-coordination.ts';
import { MemoryHistory, MemoryPools } from '../../support/fakes/memory-records.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { aSpawnedDriver, buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aPolicy } from '../../support/harness/a-supervisor.ts';
import { eventually, NEVER_COMES_MS } from '../../support/harness/eventually.ts';

/** The test plays the one processor of the machine, and moves the clock. */
const WORK_MS = 4_000;
const STEP_MS = 2_000;
const SLOW = aDefinition(
  {
    argv: ['sleep', 'infinity'],
    readinessProbe: execProbe(['test', '-e', '/tmp/worked'], { periodMs: 1_000 }),
  },
  { startupTimeoutMs: 30_000 },
);
const POOLS = 6;
const REPLICAS = 3;
const HOUR_MS = 3_600_000;

/** Pools of real sandboxes that become ready once they have worked, together on one processor. */
class BusyMachine {
  readonly spawned = aSpawnedDriver();
  readonly clock = new TestClock();
  readonly supervisor: Supervisor;
  readonly #pools = new MemoryPools();
  readonly #leftMs = new Map<InstanceId, number>();

  constructor() {
    const { clock } = this;
    const [history, coordination] = [new MemoryHistory(), aCoordination(clock)];
    const events = new EventFeed({ clock, log: quietLog, history, coordination });
    this.supervisor = new Supervisor({
      watchers: { log: quietLog, metrics: silentMetrics, events },
      ...{ driver: this.spawned.driver, pools: this.#pools, history, coordination, clock },
      policy: aPolicy({
        refill: { perSecond: 200, burst: 200, inFlight: 32, places: { first: 5, most: 256 } },
      }),
      newId: () => v7(),
    });
  }

  /** Counts the instances that have ever been launched. */
  get launched(): number {
    return this.#leftMs.size;
  }

  get isFull(): boolean {
    return this.supervisor.pools.snapshots().every(({ phase }) => phase === 'Ready');
  }

  async start(): Promise<void> {
    for (let n = 0; n < POOLS; n += 1)
      await this.#pools.create(aPool({ name: `pool-${n}`, replicas: REPLICAS, definition: SLOW }));
    await this.supervisor.start();
  }

  async stop(): Promise<void> {
    await this.supervisor.stop(1_000);
    await this.spawned.close();
  }

  /** Lets time go by, in which what starts works; it is ready at the end of its work. */
  async work(): Promise<void> {
    const starting = await this.#starting();
    for (const id of starting)
      this.#leftMs.set(id, (this.#leftMs.get(id) ?? WORK_MS) - STEP_MS / starting.length);
    const done = starting.filter((id) => (this.#leftMs.get(id) ?? WORK_MS) <= 0);
    await Promise.all(done.map((id) => this.#becomeReady(id)));
    this.clock.advance(STEP_MS);
  }

  /** Those that start, once each has been probed, and no end is under way. */
  async #starting(): Promise<readonly InstanceId[]> {
    const all = () =>
      [...this.supervisor.actors.keys()].map((id) => ({ id, is: this.supervisor.sandbox(id) }));
    const isStarting = ({ is }: ReturnType<typeof all>[number]) => is?.state === 'starting';
    const isSettled = (one: ReturnType<typeof all>[number]) =>
      one.is?.state === 'idle' || (isStarting(one) && one.is?.context.unready !== undefined);
    await eventually(() => all().every(isSettled), 'what is launched or ended has been');
    return all()
      .filter(isStarting)
      .map(({ id }) => id);
  }

  async #becomeReady(id: InstanceId): Promise<void> {
    const request = { argv: ['touch', '/tmp/worked'], timeoutMs: NEVER_COMES_MS, outputLimit: 1 };
    await this.spawned.driver.exec(id, request, new AbortController().signal);
    await eventually(() => this.supervisor.sandbox(id)?.state === 'idle', 'it is ready');
  }
}

describe('pools of sandboxes that are slow to become ready', function () {
  let machine: BusyMachine;

  before(() => {
    buildLauncher();
    machine = new BusyMachine();
  });
  after(() => machine.stop());

  it('share the processor so that none fails to start, even if all start together', async () => {
    await machine.start();
    const begun = machine.clock.now();
    while (!machine.isFull && machine.clock.now() - begun < HOUR_MS) await machine.work();

    expect(machine.isFull).to.equal(true);
    expect(machine.launched).to.equal(POOLS * REPLICAS);
    expect(machine.clock.now() - begun).to.be.below(2 * POOLS * REPLICAS * WORK_MS);
  });
});
