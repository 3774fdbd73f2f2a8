import type { Lease, LeaseListener, Leases } from '../../contracts/coordination/leases.ts';
import type { Log } from '../../contracts/log.ts';
import { LEASE_TTL_MS, type LeaseStore, type ShardLock } from './lease-store.ts';
import { ShardView } from './shard-view.ts';

/** In ms. */
const BEAT_MS = 1_300;
/** While a shard is free or moves here, or Redis does not answer. */
const SOON_MS = 250;
/** Clocks run at different speeds. */
const DRIFT_MS = 100;
/** A shard that moves to another replica is lost then. */
const HAND_OVER_MS = 5_000;
/** A replica that did not take a shard is not offered it again for this time. */
const KEEP_MS = 30_000;

/**
 * Monotonic ms. Must run on while the process is stopped (SIGSTOP), so that no lease outlives such
 * a stop.
 */
export interface LeaseTime {
  now(): number;
  after(ms: number, due: () => void): () => void;
}

export interface RedisLeasesDeps {
  readonly store: LeaseStore;
  readonly log: Log;
  readonly replica: string;
  readonly time?: LeaseTime;
}

interface Held extends Lease {
  readonly shard: number;
  readonly lock: ShardLock;
  /** Monotonic. */
  until: number;
  /** It did not take the shard, and is not offered it until then. */
  readonly insteadOf: string | undefined;
  readonly keptUntil: number;
  /** Another replica is chosen since then. */
  wantedSince: number | undefined;
}

/**
 * Each round sends a heartbeat that extends the held leases and shows free shards, then takes its
 * due ones. Takes leases only while somebody follows them.
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

  /** Held leases then expire. */
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
    // the next heartbeat removes it, or it expires
    await held.lock.unlock().catch(() => undefined);
    this.#soon(); // to check that it is taken
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

  /** Now, or after the running round. */
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

  /** Returns the delay until the next round. Rejects if Redis does not answer. */
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

  /** Reports once. The lease stays held until it is released. */
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

  /** One listener may throw. */
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
