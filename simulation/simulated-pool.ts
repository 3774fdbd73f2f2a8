import {
  afterFailure,
  planScale,
  type PoolPolicy,
  type TokenBucket,
} from '../src/machines/pool/arithmetic.ts';
import type { MemberObservation } from '../src/machines/autoscaling/observation.ts';
import { CLOSED_BREAKER, NO_INSTANCES, type BreakerStatus } from '../src/model/pools/pool.ts';
import { MomentHeap } from './moment-heap.ts';
import { MomentQueue } from './moment-queue.ts';

/** As the product's defaults are. */
export const POLICY: PoolPolicy = {
  replicaSemantics: 'total',
  refill: { perSecond: 200, burst: 200, inFlight: 128 },
  breaker: { failures: 3, firstPauseMs: 5_000, maxPauseMs: 300_000 },
};

export interface PoolMakeup {
  readonly name: string;
  readonly replicas: number;
  readonly startMs: number;
  readonly startsAtOnce: number;
}

/** How long a refused claim counts as asked for, where nothing was served since. */
const REFUSED_MS = 60_000;

/**
 * A pool of instances that are moments alone: filled and paced by the pool's own arithmetic, in
 * virtual time.
 */
export class SimulatedPool {
  readonly name: string;
  readonly ends = new MomentHeap();
  /** When each that is starting is ready, or has failed. */
  readonly starts = new MomentQueue();
  /** Until when each claim waits, in the order in which they came. */
  readonly waiting = new MomentQueue();
  /** When each that is idle was born; the longest idle first. */
  readonly idle = new MomentQueue();
  replicas: number;
  decided = 0;
  wakeAt = Number.POSITIVE_INFINITY;
  claimedAt = 0;
  failedAt = 0;
  readonly #startMs: number;
  readonly #policy: PoolPolicy;
  #bucket: TokenBucket = { tokens: POLICY.refill.burst, at: 0 };
  #breaker: BreakerStatus = CLOSED_BREAKER;
  /** Who was refused and not served since, and when; in that order. */
  readonly #refused = new Map<number, number>();
  readonly #waiters: number[] = [];

  constructor({ name, replicas, startMs, startsAtOnce }: PoolMakeup) {
    this.name = name;
    this.replicas = replicas;
    this.#startMs = startMs;
    this.#policy = { ...POLICY, refill: { ...POLICY.refill, inFlight: startsAtOnce } };
  }

  get running(): number {
    return this.ends.size;
  }

  /** Whether one was handed out; it ends at `end`. */
  claim(who: number, now: number, end: number): boolean {
    this.claimedAt = now;
    if (this.idle.size === 0) return false;
    this.#serve(who, end);
    return true;
  }

  refuse(who: number, now: number): void {
    this.#refused.delete(who);
    this.#refused.set(who, now);
  }

  wait(who: number, until: number): void {
    this.waiting.add(until);
    this.#waiters.push(who);
  }

  /** The one that has waited longest is refused. */
  giveUp(now: number): void {
    this.waiting.takeFirst();
    this.refuse(this.#waiters.shift() ?? 0, now);
  }

  /** The earliest that starts is ready: who waits gets it, until `end`. */
  started(now: number, end: () => number): boolean {
    this.idle.add(this.starts.takeFirst() - this.#startMs);
    if (this.#breaker.failures > 0) this.#breaker = CLOSED_BREAKER;
    this.replan(now);
    if (this.waiting.size === 0) return false;
    this.waiting.takeFirst();
    this.#serve(this.#waiters.shift() ?? 0, end());
    return true;
  }

  failed(now: number): void {
    this.starts.takeFirst();
    this.failedAt = now;
    this.#breaker = afterFailure(this.#breaker, { reason: 'refused', now: now }, POLICY.breaker);
    this.replan(now);
  }

  ended(now: number): void {
    this.ends.takeFirst();
    this.replan(now);
  }

  /** Launches what is missing and drops what is too much: the longest idle first. */
  replan(now: number): void {
    if (this.replicas === this.ends.size + this.idle.size + this.starts.size) {
      this.wakeAt = Number.POSITIVE_INFINITY;
      return;
    }
    const counts = {
      ...NO_INSTANCES,
      running: this.ends.size,
      idle: this.idle.size,
      starting: this.starts.size,
    };
    const plan = planScale(
      {
        replicas: this.replicas,
        counts,
        ordered: 0,
        bucket: this.#bucket,
        inFlight: this.#policy.refill.inFlight,
        breaker: this.#breaker,
        now,
      },
      this.#policy,
    );
    this.#bucket = plan.bucket;
    this.wakeAt = plan.wakeAt ?? Number.POSITIVE_INFINITY;
    for (let launched = 0; launched < plan.launch; launched++) this.starts.add(now + this.#startMs);
    for (let gone = 0; gone < plan.retire; gone++) {
      if (this.idle.size > 0) this.idle.takeFirst();
      else this.starts.takeLast();
    }
  }

  observed(now: number, protectionMs: number): MemberObservation {
    const { replicas: desired, running, idle, waiting, claimedAt, decided, name } = this;
    for (const [who, at] of this.#refused) {
      if (now - at <= REFUSED_MS) break;
      this.#refused.delete(who);
    }
    const failing = this.#breaker.failures >= POLICY.breaker.failures;
    const owed = Math.max(0, desired - running - idle.size);
    const seen = {
      name,
      desired,
      running,
      idle: idle.size,
      unavailable: 0,
      settled: this.#settled(now - protectionMs),
      pending: waiting.size + this.#refused.size,
      waiting: waiting.size,
      claimedAt,
      reachable: true,
      decided,
    };
    return failing && owed > 0
      ? {
          ...seen,
          trouble: {
            reason: 'start failures',
            count: owed,
            since: this.failedAt,
            until: this.#breaker.pausedUntil,
          },
        }
      : seen;
  }

  #serve(who: number, end: number): void {
    this.idle.takeFirst();
    this.ends.add(end);
    this.#refused.delete(who);
  }

  /**
   * How many were born by then; the idle queue is in the order of birth, all starts being equally
   * long.
   */
  #settled(by: number): number {
    let [low, high] = [0, this.idle.size];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.idle.at(middle) <= by) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
