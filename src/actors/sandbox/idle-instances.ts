import { rendezvous } from '../../lib/rendezvous.ts';
import { ALL_BUCKETS, type SandboxIndex } from './sandbox-index.ts';
import type { Log } from '../../contracts/log.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { unavailable } from '../../model/refusals.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import type { Waiters } from '../runtime/actor-host.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { Clock } from '../../contracts/clock.ts';

export interface IdleInstancesDeps {
  readonly driver: Pick<SandboxDriver, 'idle'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly index: SandboxIndex;
  readonly waiters: Waiters;
  readonly revisionOf: (poolUid: string) => string;
  readonly ownBuckets: () => readonly number[] | undefined;
  readonly learn: (fact: InstanceFact) => void;
  readonly freed: (poolUid: string) => void;
}

/** The number of ready instances, and the acquired one unless other claims took them all. */
export interface Found {
  readonly ready: number;
  readonly instance: HeldInstance | undefined;
}

/** Only one claim of this process can hold an instance at a time. */
export class IdleInstances {
  readonly lines: ClaimQueue;
  readonly #deps: IdleInstancesDeps;

  constructor(deps: IdleInstancesDeps) {
    this.#deps = deps;
    this.lines = new ClaimQueue({
      clock: deps.clock,
      acquire: (poolUid) => this.acquire(poolUid),
    });
  }

  acquire(poolUid: string): HeldInstance | undefined {
    const { index, revisionOf, ownBuckets } = this.#deps;
    const id = index.acquire(poolUid, revisionOf(poolUid), ownBuckets());
    if (id === undefined) return undefined;
    return new HeldInstance({
      id,
      idle: index.idleIn(poolUid) + 1,
      released: () => {
        this.#release(poolUid, id);
      },
    });
  }

  next(poolUid: string): string | undefined {
    const { index, revisionOf, ownBuckets } = this.#deps;
    return index.nextIdle(poolUid, revisionOf(poolUid), ownBuckets());
  }

  /** After an uncached read. Refuses with `unavailable` if the read fails. */
  async find(poolUid: string, namespace: string, atLeast: number): Promise<Found> {
    const ready = await this.look(poolUid, namespace, atLeast);
    if (ready === undefined)
      throw unavailable('it is not known right now whether an instance is idle; try again');
    return { ready, instance: this.acquire(poolUid) };
  }

  /**
   * Reads uncached, and adds what the mirror lacks. Fewer than `atLeast` means that there are no
   * others; undefined if the read fails. Never rejects.
   */
  async look(poolUid: string, namespace: string, atLeast = 1): Promise<number | undefined> {
    const { driver, log, learn } = this.#deps;
    try {
      const ready = await driver.idle(poolUid, namespace, atLeast);
      for (const fact of ready) learn(fact);
      return ready.length;
    } catch (error) {
      log.warn({ poolUid, error }, 'idle-instances-not-read');
      return undefined;
    }
  }

  /**
   * Waits for the pool's longest held instance, or until `until`. Undefined at once if no claim of
   * this process holds one.
   */
  async untilReleased(poolUid: string, until: number): Promise<string | undefined> {
    const { index, waiters } = this.#deps;
    const id = index.heldOf(poolUid);
    if (id !== undefined) await waiters.until(id, () => !index.isHeld(id), until);
    return id;
  }

  heldIn(poolUid: string): ReadonlySet<string> {
    return new Set(this.#deps.index.heldIn(poolUid));
  }

  #release(poolUid: string, id: string): void {
    const { index, waiters, freed } = this.#deps;
    const isIdle = index.release(poolUid, id);
    waiters.changed(id);
    if (!isIdle) return;
    freed(poolUid);
    this.lines.offer(poolUid);
  }
}

/**
 * Until its release, no other claim of this process tries the instance, and no pool dismisses it.
 * The claim must release it on every exit.
 */
export class HeldInstance {
  readonly id: InstanceId;
  /** At acquisition: this one, and those that nobody held. */
  readonly idle: number;
  readonly #released: () => void;
  #work: Promise<unknown> | undefined;
  #isReleased = false;

  constructor({
    id,
    idle,
    released,
  }: {
    readonly id: InstanceId;
    readonly idle: number;
    readonly released: () => void;
  }) {
    this.id = id;
    this.idle = idle;
    this.#released = released;
  }

  holdDuring(work: Promise<unknown>): void {
    this.#work = work;
  }

  /** May be repeated. */
  release(): void {
    if (this.#work) void this.#work.then(this.#releaseNow, this.#releaseNow);
    else this.#releaseNow();
  }

  readonly #releaseNow = (): void => {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#released();
  };
}

/**
 * `over`: the wait timed out. `gone`: the client disconnected. `deleted`: the pool is being
 * deleted.
 */
export type EndOfWaiting = 'over' | 'gone' | 'deleted' | 'stopping';

interface ClaimQueueDeps {
  readonly clock: Clock;
  readonly acquire: (poolUid: string) => HeldInstance | undefined;
}

const FIRST_PAUSE_MS = 25;
const LAST_PAUSE_MS = 250;

/**
 * One FIFO queue per pool, of this process. The admission decides the order over all replicas; if
 * it refuses a claim, the queue pauses briefly.
 */
class ClaimQueue {
  readonly #deps: ClaimQueueDeps;
  readonly #lines = new Map<string, Line>();
  #stopping = false;

  constructor(deps: ClaimQueueDeps) {
    this.#deps = deps;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  waiting(poolUid: string): number {
    return this.#lines.get(poolUid)?.standing.size ?? 0;
  }

  get size(): number {
    let all = 0;
    for (const { standing } of this.#lines.values()) all += standing.size;
    return all;
  }

  /** The caller must call `leave`. */
  enqueue(poolUid: string): QueueEntry {
    const line = this.#lines.get(poolUid) ?? {
      standing: new Set<Standing>(),
      pauseMs: 0,
      cancelPause: undefined,
    };
    this.#lines.set(poolUid, line);
    const standing: Standing = { hand: undefined };
    line.standing.add(standing);
    return {
      next: (until, signal) => this.#next(poolUid, standing, { until, signal }),
      pause: () => {
        this.#pause(poolUid);
      },
      leave: () => {
        line.standing.delete(standing);
        if (line.standing.size > 0 || this.#lines.get(poolUid) !== line) return;
        line.cancelPause?.();
        this.#lines.delete(poolUid);
      },
    };
  }

  turnedIdle(poolUid: string): void {
    const line = this.#lines.get(poolUid);
    if (!line) return;
    line.pauseMs = 0;
    this.#resume(poolUid, line);
  }

  offer(poolUid: string): void {
    const line = this.#lines.get(poolUid);
    if (!line || line.cancelPause) return;
    for (const { hand } of line.standing) {
      if (!hand) continue; // already tries an instance
      const offer = this.#deps.acquire(poolUid);
      if (!offer) return;
      hand(offer);
    }
  }

  end(poolUid: string, why: EndOfWaiting = 'deleted'): void {
    for (const { hand } of this.#lines.get(poolUid)?.standing ?? []) hand?.(why);
  }

  stop(): void {
    this.#stopping = true;
    for (const poolUid of [...this.#lines.keys()]) this.end(poolUid, 'stopping');
  }

  async #next(
    poolUid: string,
    standing: Standing,
    { until, signal }: { readonly until: number; readonly signal: AbortSignal | undefined },
  ): Promise<HeldInstance | EndOfWaiting> {
    if (this.#stopping) return 'stopping';
    if (signal?.aborted) return 'gone';
    return await new Promise((resolve) => {
      const hand = (end: HeldInstance | EndOfWaiting): void => {
        standing.hand = undefined;
        cancel();
        signal?.removeEventListener('abort', gone);
        resolve(end);
      };
      const gone = (): void => {
        hand('gone');
      };
      const cancel = this.#deps.clock.at(until, () => {
        hand('over');
      });
      signal?.addEventListener('abort', gone);
      standing.hand = hand;
      this.offer(poolUid);
    });
  }

  #pause(poolUid: string): void {
    const line = this.#lines.get(poolUid);
    if (!line || line.cancelPause) return;
    const { clock } = this.#deps;
    line.pauseMs = Math.min(Math.max(2 * line.pauseMs, FIRST_PAUSE_MS), LAST_PAUSE_MS);
    line.cancelPause = clock.at(clock.now() + line.pauseMs, () => {
      this.#resume(poolUid, line);
    });
  }

  #resume(poolUid: string, line: Line): void {
    line.cancelPause?.();
    line.cancelPause = undefined;
    this.offer(poolUid);
  }
}

/** `hand` is set while the claim lacks a candidate. */
interface Standing {
  hand: ((end: HeldInstance | EndOfWaiting) => void) | undefined;
}
interface Line {
  readonly standing: Set<Standing>;
  pauseMs: number;
  cancelPause: (() => void) | undefined;
}

/** The claim calls `next` again if another claim won its candidate. */
export interface QueueEntry {
  readonly next: (
    until: number,
    signal: AbortSignal | undefined,
  ) => Promise<HeldInstance | EndOfWaiting>;
  /**
   * Until the pause ends or another instance turns idle. Call it before the release of the
   * instance.
   */
  readonly pause: () => void;
  readonly leave: () => void;
}

/**
 * Recomputed as replicas come and go. Only a hint: the conditional claim decides between replicas.
 */
export class OwnBuckets {
  readonly #replica: string;
  readonly #live: () => readonly string[];
  #of = '';
  #own: readonly number[] = ALL_BUCKETS;

  constructor(replica: string, live: () => readonly string[]) {
    this.#replica = replica;
    this.#live = live;
  }

  get(): readonly number[] {
    const live = this.#live();
    const of = live.join(' ');
    if (of === this.#of) return this.#own;
    this.#of = of;
    this.#own =
      live.length <= 1
        ? ALL_BUCKETS
        : ALL_BUCKETS.filter((bucket) => rendezvous(`bucket ${bucket}`, live) === this.#replica);
    return this.#own;
  }
}
