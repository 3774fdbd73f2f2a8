import * as fc from 'fast-check';
import { expect } from 'chai';
import { ShardLeadership } from '../../src/actors/runtime/shard-leadership.ts';
import { SHARDS } from '../../src/model/shards.ts';
import { LEASE_TTL_MS } from '../../src/redis/leases/lease-store.ts';
import { RedisLeases } from '../../src/redis/leases/leases.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { VirtualLeaseStore, VirtualRedis } from './virtual-redis.ts';
import { VirtualProcess, VirtualTime } from './virtual-time.ts';

/** For a shard, after the last fault. */
export const LED_WITHIN_MS = 10_000;
/** Work ends first, and the next replica may refuse. */
const HAND_OVER_MS = 6_000;
/** A replica whose mirror stays behind notices it this late. */
const BEHIND_MS = 5_000;
/** Then a refused shard is offered again. */
const CALM_MS = 45_000;
const ALL = Array.from({ length: SHARDS }, (_, shard) => shard);

const ms = (most: number) => fc.integer({ min: 1, max: most });
const who = fc.nat(3);

export const faults = fc.array(
  fc.record({
    afterMs: fc.oneof(ms(300), ms(6_000)),
    fault: fc.oneof(
      fc.record({ kind: fc.constantFrom('start', 'flush' as const) }),
      fc.record({
        kind: fc.constantFrom(
          'kill',
          'restart',
          'leave',
          'hang drains',
          'fail drains',
          'throw',
          'lock nothing',
          'behind for ever',
          'stand down' as const,
        ),
        who,
      }),
      fc.record({
        kind: fc.constantFrom(
          'stop replica',
          'cut link',
          'fail catch-up',
          'hang catch-up' as const,
        ),
        who,
        forMs: fc.oneof(ms(3_000), ms(20_000)),
      }),
      fc.record({
        kind: fc.constantFrom('stop Redis', 'take Redis away', 'slow Redis' as const),
        forMs: fc.oneof(ms(2_000), ms(20_000)),
      }),
      fc.record({ kind: fc.constant('stall a hand-over' as const), forMs: ms(3_000) }),
      fc.record({
        kind: fc.constant('fail over' as const),
        ageMs: ms(5_000),
        clockAhead: fc.integer({ min: -20_000, max: 20_000 }),
      }),
    ),
  }),
  { maxLength: 10 },
);

type Fault = (typeof faults extends fc.Arbitrary<readonly (infer T)[]> ? T : never)['fault'];

class VirtualReplica {
  readonly process: VirtualProcess;
  readonly leases: RedisLeases;
  readonly leading: ShardLeadership;
  readonly store: VirtualLeaseStore;
  readonly name: string;
  catchUp: 'works' | 'fails' | 'hangs' = 'works';
  isBehindForEver = false;
  drains: 'work' | 'fail' | 'hang' = 'work';
  throws = false;
  leaves = false;

  constructor(
    time: VirtualTime,
    redis: VirtualRedis,
    { name, random }: { readonly name: string; readonly random: () => number },
  ) {
    this.name = name;
    this.process = new VirtualProcess(time, 0.985 + random() * 0.03);
    this.store = new VirtualLeaseStore({
      time,
      redis,
      process: this.process,
      replica: name,
      random,
    });
    this.leases = new RedisLeases({
      store: this.store,
      log: quietLog,
      replica: name,
      time: this.process,
    });
    const report = (): void => {
      if (this.throws) throw new Error('an actor throws');
    };
    this.leading = new ShardLeadership({
      leases: this.leases,
      clock: this.process,
      log: quietLog,
      lead: report,
      follow: report,
      caughtUp: () =>
        this.#after(
          random() * 500,
          this.catchUp === 'works' && !this.isBehindForEver
            ? 'works'
            : this.catchUp === 'hangs'
              ? 'hangs'
              : 'fails',
        ),
      drained: () =>
        this.#after(
          random() * 200,
          this.drains === 'work' ? 'works' : this.drains === 'hang' ? 'hangs' : 'fails',
        ),
    });
  }

  start(): void {
    this.leases.start();
    void this.leading.start();
  }

  /** As supervisor and coordination stop. */
  async leave(): Promise<void> {
    if (this.leaves) return;
    this.leaves = true;
    this.leading.stop();
    await this.#after(200, 'works');
    await this.leading.giveUp();
    await this.leases.stop();
    this.process.ended = true;
  }

  kill(): void {
    this.process.ended = true;
  }

  get lives(): boolean {
    return !this.process.ended;
  }

  leads(shard: number): boolean {
    return this.lives && this.process.stoppedUntil === 0 && this.leading.leads(shard);
  }
  holds(shard: number): boolean {
    return this.lives && this.leases.lease(shard)?.held() === true;
  }

  #after(delayMs: number, how: 'works' | 'fails' | 'hangs'): Promise<void> {
    return new Promise((resolve, reject) => {
      if (how === 'hangs') return;
      this.process.after(delayMs, () => {
        if (how === 'works') resolve();
        else reject(new Error('out of reach'));
      });
    });
  }
}

/** Replicas over one Redis, with faults. */
export class LeaseWorld {
  readonly time = new VirtualTime();
  readonly #redis = new VirtualRedis(this.time);
  readonly #replicas: VirtualReplica[] = [];
  readonly #random: () => number;
  #started = 0;
  /** Until then a shard may have two holders: Redis lost its data. */
  #forgetfulUntil = 0;
  #calmAt = 0;

  constructor(seed: number) {
    this.#random = randomOf(seed);
    for (let n = 0; n < 2; n++) this.#start();
  }

  async suffer(
    faultsToCome: readonly { readonly afterMs: number; readonly fault: Fault }[],
  ): Promise<void> {
    for (const { afterMs, fault } of faultsToCome) {
      await this.time.pass(afterMs, () => {
        this.#isHeldOnce();
      });
      this.#strike(fault);
    }
    if (
      !this.#living.some(
        ({ store, isBehindForEver, leaves }) => !store.locksNothing && !isBehindForEver && !leaves,
      )
    )
      this.#start();
    await this.time.pass(Math.max(0, this.#calmAt - this.time.now), () => {
      this.#isHeldOnce();
    });
    this.#redis.stallsAtUnlockMs = 0;
    await this.time.pass(Math.max(0, this.#redis.stoppedUntil - this.time.now), () => {
      this.#isHeldOnce();
    });
    this.#calmAt = this.time.now;
  }

  /** Except in hand-overs. */
  async isLedAfterwards(): Promise<void> {
    const ledAt = new Map<number, number>();
    const look = (): void => {
      this.#isHeldOnce();
      for (const shard of ALL)
        if (this.#replicas.filter((replica) => replica.leads(shard)).length === 1)
          ledAt.set(shard, this.time.now);
    };
    const isLedWithin = (withinMs: number, what: string): void => {
      const unled = ALL.filter(
        (shard) => this.time.now - (ledAt.get(shard) ?? Number.NEGATIVE_INFINITY) > withinMs,
      );
      if (unled.length > 0) this.#fail(what, unled);
    };
    // A mirror that stays behind is a lasting fault.
    const isBehind = this.#living.some(({ isBehindForEver }) => isBehindForEver);
    await this.time.pass(LED_WITHIN_MS + (isBehind ? BEHIND_MS : 0), look);
    isLedWithin(HAND_OVER_MS, 'are led by nobody');
    // A shard may go to such a replica, and from there to another.
    const boundMs = isBehind ? HAND_OVER_MS + BEHIND_MS + HAND_OVER_MS : HAND_OVER_MS;
    await this.time.pass(CALM_MS, () => {
      look();
      isLedWithin(boundMs, 'are led by nobody in calm');
    });
  }

  get #living(): readonly VirtualReplica[] {
    return this.#replicas.filter(({ lives }) => lives);
  }

  /** By the holders' own clocks. */
  #isHeldOnce(): void {
    if (this.time.now < this.#forgetfulUntil) return;
    const twice = ALL.filter(
      (shard) => this.#replicas.filter((replica) => replica.holds(shard)).length > 1,
    );
    if (twice.length > 0) this.#fail('are held twice', twice);
  }

  #fail(what: string, shards: readonly number[]): never {
    const replicas = this.#living.map(
      ({ name, leases, leading }) =>
        `${name} holds [${ALL.filter((shard) => leases.lease(shard)).join()}], leads [${leading.shards.join()}], sees ${leases.replicas().join()}`,
    );
    expect.fail(
      `at ${Math.round(this.time.now)} ms, calm since ${Math.round(this.#calmAt)} ms, shards ${shards.join()} ${what}; ${replicas.join('; ')}`,
    );
  }

  #start(): void {
    const replica = new VirtualReplica(this.time, this.#redis, {
      name: `r${this.#started++}`,
      random: this.#random,
    });
    this.#replicas.push(replica);
    replica.start();
  }

  #strike(fault: Fault): void {
    const victim =
      'who' in fault ? this.#living[fault.who % Math.max(1, this.#living.length)] : undefined;
    if ('forMs' in fault) this.#calmAt = Math.max(this.#calmAt, this.time.now + fault.forMs);
    this.#calmAt = Math.max(this.#calmAt, this.time.now);
    switch (fault.kind) {
      case 'start':
        if (this.#living.length < 5) this.#start();
        return;
      case 'flush':
        this.#forgets();
        this.#redis.flush();
        return;
      case 'fail over':
        this.#forgets();
        this.#redis.failOver(fault.ageMs, fault.clockAhead);
        return;
      case 'stop Redis':
        this.#redis.stop(fault.forMs);
        return;
      case 'take Redis away':
        this.#redis.awayUntil = Math.max(this.#redis.awayUntil, this.time.now + fault.forMs);
        return;
      case 'slow Redis':
        this.#redis.slowUntil = Math.max(this.#redis.slowUntil, this.time.now + fault.forMs);
        return;
      case 'stall a hand-over':
        this.#redis.stallsAtUnlockMs = fault.forMs;
        return;
      default:
        if (victim) this.#strikeReplica(victim, fault);
    }
  }

  #strikeReplica(victim: VirtualReplica, fault: Extract<Fault, { readonly who: number }>): void {
    switch (fault.kind) {
      case 'kill':
        victim.kill();
        return;
      case 'restart':
        victim.kill();
        this.#start();
        return;
      case 'leave':
        void victim.leave();
        return;
      case 'hang drains':
        victim.drains = 'hang';
        return;
      case 'fail drains':
        victim.drains = 'fail';
        return;
      case 'throw':
        victim.throws = true;
        return;
      case 'lock nothing':
        victim.store.locksNothing = true;
        return;
      case 'behind for ever':
        victim.isBehindForEver = true;
        return;
      case 'stand down': // what is under way never ends
        victim.leaves = true;
        victim.leading.stop();
        return;
      case 'cut link':
        victim.store.cutUntil = this.time.now + fault.forMs;
        return;
      case 'stop replica':
        victim.process.stoppedUntil = this.time.now + fault.forMs;
        this.time.after(fault.forMs, () => {
          victim.process.stoppedUntil = 0;
        });
        return;
      default:
        victim.catchUp = fault.kind === 'fail catch-up' ? 'fails' : 'hangs';
        this.time.after(fault.forMs, () => {
          victim.catchUp = 'works';
        });
    }
  }

  #forgets(): void {
    this.#forgetfulUntil = this.time.now + LEASE_TTL_MS;
  }
}

/** Mulberry32: from 0 to 1, by the seed. */
const randomOf = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
};
