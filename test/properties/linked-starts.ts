import * as fc from 'fast-check';
import { expect } from 'chai';
import { silentLog } from '../../src/contracts/log.ts';
import type { ClusterStarts } from '../../src/contracts/coordination/cluster-starts.ts';
import { ClusterStartStore } from '../../src/embedded/coordination/cluster-start-store.ts';
import { LinkedStarts, type StartedLink } from '../../src/fleet/link/linked-starts.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

/** A heartbeat's PROBE_MS. */
const SILENT_MS = 1_500;
/** Until a refused worker retries. */
const AGAIN_MS = 1_000;
export const LINKED_WITHIN_MS = 5_000;
const STEP_MS = 50;

const who = fc.nat(2);
const at = fc.nat(2);
const ms = fc.oneof(fc.nat(500), fc.nat(6_000));

export const faults = fc.array(
  fc.record({
    afterMs: ms,
    fault: fc.oneof(
      fc.record({ kind: fc.constantFrom('kill', 'power off', 'start anew' as const), who }),
      fc.record({ kind: fc.constantFrom('cut', 'cut off' as const), who, at, forMs: ms }),
      fc.record({ kind: fc.constantFrom('away', 'slow' as const), at, forMs: ms }),
      fc.record({ kind: fc.constant('forget' as const) }),
      fc.record({ kind: fc.constant('restart manager' as const), at }),
    ),
  }),
  { maxLength: 12 },
);

type Fault = (typeof faults extends fc.Arbitrary<readonly (infer T)[]> ? T : never)['fault'];

/** Its ends may lose each other. */
class VirtualLink implements StartedLink {
  readonly worker: VirtualWorker;
  readonly #manager: VirtualManager;
  isOver = false;
  isOpen = false;
  #wasSilent = false;

  constructor(worker: VirtualWorker, manager: VirtualManager) {
    this.worker = worker;
    this.#manager = manager;
  }

  get #answers(): boolean {
    return this.worker.reaches(this.#manager);
  }

  get isSilent(): boolean {
    if (this.#answers) this.#wasSilent = false;
    return this.#wasSilent;
  }

  probe(silent: () => void): void {
    const { clock } = this.#manager;
    if (this.#answers) return;
    clock.at(clock.now() + SILENT_MS, () => {
      this.#wasSilent = true;
      if (this.isSilent) silent();
    });
  }

  cut(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#manager.links.delete(this);
    this.#manager.starts.end(this);
  }
}

class VirtualWorker {
  readonly start: string;
  isUp = true;
  /** No traffic in either direction. */
  readonly cutOff = new Set<VirtualManager>();

  constructor(start: string) {
    this.start = start;
  }

  reaches(manager: VirtualManager): boolean {
    return this.isUp && !this.cutOff.has(manager);
  }
}

class VirtualManager {
  readonly clock: TestClock;
  readonly links = new Set<VirtualLink>();
  readonly #held: ClusterStarts;
  starts: LinkedStarts;
  isAway = false;
  slowMs = 0;

  constructor(clock: TestClock, held: ClusterStarts) {
    this.clock = clock;
    this.#held = held;
    this.starts = this.#started();
  }

  /** As after a kill: releases nothing. */
  restart(): void {
    this.starts.stop();
    const { isAway } = this;
    this.isAway = true;
    for (const link of [...this.links]) link.cut();
    this.isAway = isAway;
    this.starts = this.#started();
  }

  /** Dials unless a link is open or opening. */
  dial(worker: VirtualWorker): void {
    if (!worker.reaches(this) || [...this.links].some((link) => link.worker === worker)) return;
    const link = new VirtualLink(worker, this);
    this.links.add(link);
    void this.starts.take(link, { clusterId: 'w1', start: worker.start }).then((mayStand) => {
      if (link.isOver) return;
      if (mayStand) link.isOpen = true;
      else link.cut();
    });
  }

  get open(): readonly VirtualLink[] {
    return [...this.links].filter(({ isOpen }) => isOpen);
  }

  #started(): LinkedStarts {
    const late = async <T>(call: () => Promise<T>): Promise<T> => {
      if (this.isAway) throw new Error('out of reach');
      const answer = await call();
      if (this.slowMs > 0)
        await new Promise<void>(
          (resolve) => void this.clock.at(this.clock.now() + this.slowMs, resolve),
        );
      return answer;
    };
    const starts = new LinkedStarts({
      held: {
        holdStarts: (asked) => late(() => this.#held.holdStarts(asked)),
        releaseStart: (given) => late(() => this.#held.releaseStart(given)),
      },
      clock: this.clock,
      log: silentLog,
    });
    starts.start();
    return starts;
  }
}

export class StartsWorld {
  readonly clock = new TestClock();
  readonly #store = new ClusterStartStore(this.clock);
  readonly #managers = ['m0', 'm1', 'm2'].map(
    (name) => new VirtualManager(this.clock, this.#store.of(name)),
  );
  readonly #workers: VirtualWorker[] = [];
  #count = 0;

  constructor(workers = 3) {
    for (let n = 0; n < workers; n += 1) this.#workers.push(this.#anew());
  }

  async run(ms: number): Promise<void> {
    for (let gone = 0; gone < ms; gone += STEP_MS) {
      this.clock.advance(STEP_MS);
      if (this.clock.now() % AGAIN_MS === 0) this.#dialAll();
      for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
      for (const { open } of this.#managers)
        expect(new Set(open.map(({ worker }) => worker.start)).size).to.be.at.most(1);
    }
  }

  /** Linked and answering starts, by replica. */
  get linked(): readonly (string | undefined)[] {
    return this.#managers.map(
      (manager) => manager.open.find(({ worker }) => worker.reaches(manager))?.worker.start,
    );
  }

  /** Whether each replica reports the other start. */
  get isToldOf(): boolean {
    return this.#managers.every(({ starts }) => starts.rivalAt('w1') !== undefined);
  }

  get up(): number {
    return this.#workers.filter(({ isUp }) => isUp).length;
  }

  worker(n: number): VirtualWorker {
    return this.#workers[n] ?? expect.fail();
  }

  carryOut(fault: Fault): void {
    if (fault.kind === 'forget') return this.#store.clear();
    if (!('at' in fault)) {
      this.end(fault.who, fault.kind === 'power off' ? 'power off' : 'kill');
      if (fault.kind === 'start anew') this.#workers[fault.who] = this.#anew();
      return;
    }
    const manager = this.#managers[fault.at] ?? expect.fail();
    if (!('forMs' in fault)) return manager.restart();
    const until = this.clock.now() + fault.forMs;
    if (!('who' in fault)) {
      if (fault.kind === 'away') manager.isAway = true;
      else manager.slowMs = Math.min(fault.forMs, 900);
      this.clock.at(until, () => {
        manager.isAway = false;
        manager.slowMs = 0;
      });
      return;
    }
    const worker = this.worker(fault.who);
    if (fault.kind === 'cut off') {
      worker.cutOff.add(manager);
      this.clock.at(until, () => void worker.cutOff.delete(manager));
    }
    if (fault.kind === 'cut')
      for (const link of manager.open) if (link.worker === worker) link.cut();
  }

  end(n: number, how: 'kill' | 'power off'): void {
    const worker = this.worker(n);
    worker.isUp = false;
    if (how === 'power off') return;
    for (const { links } of this.#managers)
      for (const link of [...links]) if (link.worker === worker) link.cut();
  }

  #anew(): VirtualWorker {
    this.#count += 1;
    return new VirtualWorker(`start-${this.#count}`);
  }

  #dialAll(): void {
    for (const manager of this.#managers) for (const worker of this.#workers) manager.dial(worker);
  }
}
