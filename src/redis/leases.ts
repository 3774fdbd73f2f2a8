import Redlock, { type Lock } from 'redlock';
import type { Lease, LeaseListener, Leases } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import { rendezvous } from '../model/rendezvous.ts';
import { SHARDS } from '../model/shards.ts';
import type { Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import { HEARTBEAT, NEXT_EPOCH, NO_HOLDER } from './scripts/leases.ts';

export const LEASE_SCRIPTS = [HEARTBEAT, NEXT_EPOCH, NO_HOLDER] as const;

const TTL_MS = 4_000;
const EXTEND_MS = 1_300;
/** How often a shard is tried that nobody alive holds. */
const TAKE_MS = 250;
/** A replica is dead without a heartbeat for so long: before its locks end, so that they are taken the moment they do. */
const DEAD_MS = 3_500;
/** Ours ends so much earlier than Redis has it: clocks do not run at one speed. */
const DRIFT_MS = 100;

export interface RedisLeasesDeps {
  /** A connection of its own: no claim stands in the way of an extension. */
  readonly link: RedisLink;
  readonly keys: Keys;
  readonly log: Log;
  readonly replica: string;
  /** ms; never set back, and goes on while the process is stopped. */
  readonly monotonic?: () => number;
}

interface Held extends Lease {
  readonly shard: number;
  readonly lock: Lock;
  /** By the monotonic clock. */
  until: number;
  wantedElsewhere: boolean;
}

/** Leases of the shards: a lock of redlock each, extended every 1.3 s, over the live replicas by rendezvous hashing. */
export class RedisLeases implements Leases {
  readonly #deps: RedisLeasesDeps;
  readonly #monotonic: () => number;
  readonly #redlock: Redlock;
  readonly #held = new Map<number, Held>();
  readonly #listeners = new Set<LeaseListener>();
  #holders: ReadonlyMap<number, string> = new Map();
  #replicas: readonly string[];
  #leaving = false;
  #running = false;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #beatAt = Number.NEGATIVE_INFINITY;

  constructor(deps: RedisLeasesDeps) {
    this.#deps = deps;
    this.#monotonic = deps.monotonic ?? (() => performance.now());
    this.#replicas = [deps.replica];
    this.#redlock = new Redlock([deps.link.client], { retryCount: 0, driftFactor: 0 });
    this.#redlock.on('clientError', (error) => { deps.log.debug({ error: String(error) }, 'lease-call-failed'); });
  }

  /** Begins to take leases. */
  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#again(0);
  }

  /** Resolves when nothing is under way; what is still held ends by itself. */
  async stop(): Promise<void> {
    this.leave();
    this.#running = false;
    clearTimeout(this.#timer);
    await this.#round;
    for (const shard of [...this.#held.keys()]) this.#lose(shard);
    await this.#beat().catch(() => undefined);
  }

  lease(shard: number): Lease | undefined {
    const held = this.#held.get(shard);
    return held?.held() ? held : undefined;
  }

  follow(listener: LeaseListener): () => void {
    this.#listeners.add(listener);
    for (const { shard, wantedElsewhere } of this.#held.values()) {
      listener.gained(shard);
      if (wantedElsewhere) listener.lost(shard, 'wanted-elsewhere');
    }
    return () => { this.#listeners.delete(listener); };
  }

  async giveUp(shard: number): Promise<void> {
    const held = this.#held.get(shard);
    if (!held) return;
    this.#held.delete(shard);
    held.until = Number.NEGATIVE_INFINITY;
    const { link, keys, replica } = this.#deps;
    await Promise.allSettled([held.lock.unlock(), link.run(NO_HOLDER, [keys.holders], [shard, replica])]);
  }

  leave(): void {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#beatAt = Number.NEGATIVE_INFINITY; // the next round tells the others
    clearTimeout(this.#timer);
    this.#round = this.#round.then(() => { clearTimeout(this.#timer); return this.#goRound(); });
  }

  replicas(): readonly string[] { return this.#replicas; }

  /** Who said that it holds which shard, as last seen. */
  holders(): ReadonlyMap<number, string> { return this.#holders; }

  #again(delayMs: number): void {
    if (!this.#running) return;
    this.#timer = setTimeout(() => { this.#round = this.#goRound(); }, delayMs).unref();
  }

  /** Extends what is held and takes what is due. Never rejects. */
  async #goRound(): Promise<void> {
    const began = this.#monotonic();
    try {
      for (const held of [...this.#held.values()]) if (!held.held()) this.#lose(held.shard);
      if (began - this.#beatAt >= EXTEND_MS - TAKE_MS / 2) {
        this.#beatAt = began;
        const [beat] = await Promise.allSettled([this.#beat(), ...[...this.#held.values()].map((held) => this.#extend(held))]);
        if (beat.status === 'fulfilled') this.#share();
      }
      await Promise.allSettled(this.#due().map((shard) => this.#take(shard)));
    } catch (error) {
      this.#deps.log.debug({ error: String(error) }, 'lease-round-failed');
    }
    const next = this.#due().length > 0 ? TAKE_MS : EXTEND_MS;
    this.#again(Math.max(TAKE_MS / 5, began + next - this.#monotonic()));
  }

  async #beat(): Promise<void> {
    const { link, keys, replica } = this.#deps;
    const [, count, ...rest] = await link.run(HEARTBEAT, [keys.replicas, keys.holders], [replica, DEAD_MS, this.#leaving ? 'leave' : 'join']);
    this.#replicas = rest.slice(0, Number(count)).map(String).sort();
    const holders = new Map<number, string>();
    for (let i = Number(count); i < rest.length; i += 2) holders.set(Number(rest[i]), String(rest[i + 1]));
    this.#holders = holders;
  }

  /** Shards that are to be this replica's and that nobody alive has. */
  #due(): readonly number[] {
    if (this.#leaving) return [];
    const { replica } = this.#deps;
    return Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => {
      const holder = this.#holders.get(shard);
      return !this.#held.has(shard) && this.#chosen(shard) === replica && (holder === undefined || holder === replica || !this.#replicas.includes(holder));
    });
  }

  #chosen(shard: number): string | undefined { return rendezvous(`shard-${shard}`, this.#replicas); }

  /** What another live replica is to have is told once; it goes on being held until it is given up. */
  #share(): void {
    for (const held of [...this.#held.values()]) {
      const wanted = this.#leaving || this.#chosen(held.shard) !== this.#deps.replica;
      if (!wanted || held.wantedElsewhere) continue;
      held.wantedElsewhere = true;
      for (const listener of this.#listeners) listener.lost(held.shard, 'wanted-elsewhere');
    }
  }

  async #take(shard: number): Promise<void> {
    const { link, keys, replica, log } = this.#deps;
    const sentAt = this.#monotonic();
    let lock: Lock;
    try {
      lock = await this.#redlock.lock(keys.lease(shard), TTL_MS);
    } catch {
      return; // somebody has it still
    }
    const [, epoch] = await link.run(NEXT_EPOCH, [keys.epochs, keys.holders], [shard, replica]);
    const held: Held = {
      shard, lock, epoch: Number(epoch), until: sentAt + TTL_MS - DRIFT_MS, wantedElsewhere: false,
      held: () => this.#monotonic() < held.until,
    };
    if (!held.held() || !this.#running) {
      await lock.unlock();
      return;
    }
    this.#held.set(shard, held);
    log.info({ shard, epoch: held.epoch }, 'lease-gained');
    for (const listener of this.#listeners) listener.gained(shard);
  }

  async #extend(held: Held): Promise<void> {
    const sentAt = this.#monotonic();
    held.lock.expiration = Number.MAX_SAFE_INTEGER; // Redis decides, not the machine's clock, which may have been set
    try {
      await held.lock.extend(TTL_MS);
      if (held.held()) held.until = sentAt + TTL_MS - DRIFT_MS;
    } catch (error) {
      this.#deps.log.debug({ shard: held.shard, error: String(error) }, 'lease-not-extended');
      held.until = Number.NEGATIVE_INFINITY; // redlock has removed what was left of it
    }
    if (!held.held()) this.#lose(held.shard);
  }

  #lose(shard: number): void {
    const held = this.#held.get(shard);
    if (!held) return;
    this.#held.delete(shard);
    held.until = Number.NEGATIVE_INFINITY;
    this.#deps.log.warn({ shard, epoch: held.epoch }, 'lease-lost');
    for (const listener of this.#listeners) listener.lost(shard, 'gone');
  }
}
