import type { Lease, LeaseListener, Leases } from '../../contracts/coordination/leases.ts';
import type { Log } from '../../contracts/log.ts';
import { LEASE_TTL_MS, type LeaseStore, type ShardLock } from './lease-store.ts';
import { ShardView } from './shard-view.ts';

/** Milliseconds between heartbeats, each of which extends what is held. */
const BEAT_MS = 1_300;
/**
 * Milliseconds between heartbeats while a shard is free or is to come to this replica, or Redis
 * does not answer.
 */
const SOON_MS = 250;
/** Milliseconds by which ours ends earlier than Redis has it: clocks do not run at one speed. */
const DRIFT_MS = 100;
/**
 * Milliseconds for which a shard that another replica is to have may still be held; then it is
 * lost.
 */
const HAND_OVER_MS = 5_000;
/**
 * A shard that its chosen replica did not take is kept for this, before that one is to have it
 * again.
 */
const KEEP_MS = 30_000;

/**
 * Monotonic time in ms, and timers, which return how to cancel them. Time goes on while an operator
 * stops the process (SIGSTOP), so that no lease is held after the stop which ended in it.
 */
export interface LeaseTime {
  now(): number;
  after(ms: number, due: () => void): () => void;
}

export interface RedisLeasesDeps {
  readonly store: LeaseStore;
  readonly log: Log;
  /** This replica's name. */
  readonly replica: string;
  readonly time?: LeaseTime;
}

interface Held extends Lease {
  readonly shard: number;
  readonly lock: ShardLock;
  /** By the monotonic clock. */
  until: number;
  /**
   * The replica that was to have it and did not take it; until when it is not offered to that one
   * again.
   */
  readonly insteadOf: string | undefined;
  readonly keptUntil: number;
  /** Since when another replica is to have it. */
  wantedSince: number | undefined;
}

/**
 * Takes and keeps the leases of the shards, each of which is a lock in Redis. Each round is a
 * heartbeat, which extends what is held and shows what is free; then what is due is taken. Leases
 * are taken while somebody follows them.
 */
export class RedisLeases implements Leases {
  readonly #deps: RedisLeasesDeps;
  readonly #time: LeaseTime;
  readonly #view: ShardView;
  readonly #held = new Map<number, Held>();
  readonly #listeners = new Set<LeaseListener>();
  #left = false;
  #running = false;
  #cancel: () => void = () => undefined;
  #round: Promise<void> | undefined;
  #hurries = false;

  constructor(deps: RedisLeasesDeps) {
    this.#deps = deps;
    this.#time = deps.time ?? realTime;
    this.#view = new ShardView(deps.replica);
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#soon();
  }

  /** Resolves when nothing is under way; what is still held ends by itself. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#left = true;
    this.#cancel();
    await this.#round;
    for (const shard of [...this.#held.keys()]) this.#lose(shard);
    await this.#deps.store.beat('leaves', new Map()).catch(() => undefined);
  }

  lease(shard: number): Lease | undefined {
    const held = this.#held.get(shard);
    return held?.held() ? held : undefined;
  }

  follow(listener: LeaseListener): () => void {
    this.#listeners.add(listener);
    for (const { shard, wantedSince } of [...this.#held.values()]) {
      this.#report(listener, (one) => {
        one.gained(shard);
      });
      if (wantedSince !== undefined)
        this.#report(listener, (one) => {
          one.lost(shard, 'wanted-elsewhere');
        });
    }
    this.#soon();
    return () => {
      this.#listeners.delete(listener);
    };
  }

  async giveUp(shard: number): Promise<void> {
    const held = this.#held.get(shard);
    if (!held) return;
    this.#held.delete(shard);
    held.until = Number.NEGATIVE_INFINITY;
    // the next heartbeat removes it, or it ends by itself
    await held.lock.unlock().catch(() => undefined);
    this.#soon(); // to see whether it is taken
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#soon();
  }

  join(): void {
    if (!this.#left) return;
    this.#left = false;
    this.#soon();
  }

  replicas(): readonly string[] {
    return [...new Set([...this.#view.replicas, this.#deps.replica])].sort();
  }

  holders(): ReadonlyMap<number, string> {
    return this.#view.holders;
  }

  /** Begins a round now, or once the one that is under way is over. */
  #soon(): void {
    if (!this.#running) return;
    this.#hurries = true;
    if (!this.#round) this.#beginAfter(0);
  }

  #beginAfter(ms: number): void {
    this.#cancel();
    this.#cancel = this.#time.after(ms, () => {
      this.#begin();
    });
  }

  #begin(): void {
    const began = this.#time.now();
    this.#hurries = false;
    this.#round = this.#goRound()
      .catch((error: unknown) => {
        this.#deps.log.debug({ error: String(error) }, 'lease-round-failed');
        return SOON_MS;
      })
      .then((pauseMs) => {
        this.#round = undefined;
        if (this.#running)
          this.#beginAfter(
            this.#hurries ? 0 : Math.max(SOON_MS / 5, began + pauseMs - this.#time.now()),
          );
      });
  }

  /** Returns after how many ms the next one is to begin. Rejects where Redis does not answer. */
  async #goRound(): Promise<number> {
    this.#loseWhatIsOver();
    await this.#beat();
    this.#offer();
    if (!this.#takes) return BEAT_MS;
    const due = this.#view.due(this.#time.now()).filter((shard) => !this.#held.has(shard));
    await Promise.all(due.map((shard) => this.#take(shard)));
    return this.#view.isChanging() ? SOON_MS : BEAT_MS;
  }

  get #takes(): boolean {
    return this.#running && !this.#left && this.#listeners.size > 0;
  }

  async #beat(): Promise<void> {
    const sentAt = this.#time.now();
    const held = new Map(this.#held);
    try {
      const values = new Map([...held].map(([shard, { lock }]) => [shard, lock.value]));
      this.#view.heard(
        await this.#deps.store.beat(this.#takes ? 'takes' : 'lives', values),
        this.#time.now(),
      );
    } catch (error) {
      this.#view.unheard();
      throw error;
    } finally {
      this.#loseWhatIsOver();
    }
    for (const [shard, one] of held) {
      if (this.#held.get(shard) !== one) continue;
      if (this.#view.valueOf(shard) === one.lock.value)
        one.until = sentAt + LEASE_TTL_MS - DRIFT_MS;
      else this.#lose(shard);
    }
  }

  /** Reports once what another replica is to have; it goes on being held until it is given up. */
  #offer(): void {
    const now = this.#time.now();
    for (const held of [...this.#held.values()]) {
      const chosen = this.#view.chosen(held.shard);
      if (held.wantedSince !== undefined || chosen === undefined || chosen === this.#deps.replica)
        continue;
      if (this.#takes && chosen === held.insteadOf && now < held.keptUntil) continue;
      held.wantedSince = now;
      this.#reportAll((listener) => {
        listener.lost(held.shard, 'wanted-elsewhere');
      });
    }
  }

  async #take(shard: number): Promise<void> {
    const { store, replica, log } = this.#deps;
    const sentAt = this.#time.now();
    const lock = await store.lock(shard).catch(() => undefined);
    if (!lock) return;
    const chosen = this.#view.chosen(shard);
    const insteadOf = chosen === replica ? undefined : chosen;
    const held: Held = {
      shard,
      lock,
      epoch: lock.epoch,
      until: sentAt + LEASE_TTL_MS - DRIFT_MS,
      held: () => this.#time.now() < held.until,
      insteadOf,
      keptUntil: sentAt + KEEP_MS,
      wantedSince: undefined,
    };
    if (!held.held() || !this.#takes) {
      await lock.unlock().catch(() => undefined);
      return;
    }
    this.#held.set(shard, held);
    log.info(
      { shard, epoch: held.epoch, ...(insteadOf === undefined ? {} : { insteadOf }) },
      'lease-gained',
    );
    this.#reportAll((listener) => {
      listener.gained(shard);
    });
  }

  #loseWhatIsOver(): void {
    const now = this.#time.now();
    for (const held of [...this.#held.values()]) {
      if (
        !held.held() ||
        (held.wantedSince !== undefined && now - held.wantedSince >= HAND_OVER_MS)
      )
        this.#lose(held.shard);
    }
  }

  #lose(shard: number): void {
    const held = this.#held.get(shard);
    if (!held) return;
    this.#held.delete(shard);
    held.until = Number.NEGATIVE_INFINITY;
    this.#deps.log.warn({ shard, epoch: held.epoch }, 'lease-lost');
    this.#reportAll((listener) => {
      listener.lost(shard, 'gone');
    });
  }

  #reportAll(report: (listener: LeaseListener) => void): void {
    for (const listener of [...this.#listeners]) this.#report(listener, report);
  }

  /** One listener that throws takes nothing away from the others. */
  #report(listener: LeaseListener, report: (listener: LeaseListener) => void): void {
    try {
      report(listener);
    } catch (error) {
      this.#deps.log.error({ error: String(error) }, 'lease-listener-failed');
    }
  }
}

const realTime: LeaseTime = {
  now: () => performance.now(),
  after: (ms, due) => {
    const timer = setTimeout(due, ms).unref();
    return () => {
      clearTimeout(timer);
    };
  },
};
