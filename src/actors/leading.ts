import type { Clock } from '../contracts/clock.ts';
import type { Leases } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import { SHARDS } from '../model/shards.ts';

export interface LeadingDeps {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly log: Log;
  /** Resolves once the mirror shows all that was written before the call. */
  readonly caughtUp: () => Promise<void>;
  readonly lead: (shard: number) => void;
  readonly follow: (shard: number) => void;
  /** Resolves once what was under way at the call is done. */
  readonly drained: () => Promise<void>;
}

const CATCH_UP_AGAIN_MS = 500;
const DRAIN_MS = 2_000;
/** A large mirror takes seconds to catch up; meanwhile claims need no leader. */
const START_MS = 250;
const TELL_MS = 100;

/**
 * Which shards this replica leads. A lease alone is not enough: the replica leads once its mirror has caught up with what
 * the last leader wrote, so that nothing is launched twice. A lease that is wanted elsewhere is given up in order: it
 * stops deciding, what is under way is finished, then the lease goes.
 */
export class Leading {
  readonly #deps: LeadingDeps;
  /** By shard: the epoch under which it leads, or is about to. */
  readonly #epochs = new Map<number, number>();
  readonly #led = new Set<number>();
  /** The epochs of those that no log line tells of yet. */
  readonly #untold = new Map<number, number>();
  #unfollow: (() => void) | undefined;
  #over = false;

  constructor(deps: LeadingDeps) { this.#deps = deps; }

  /** Resolves once every shard whose lease is held now is led, or a moment later. Does nothing once it was stopped. */
  async start(): Promise<void> {
    if (this.#over) return;
    const first: Promise<void>[] = [];
    let starting = true;
    this.#unfollow = this.#deps.leases.follow({
      gained: (shard) => {
        const gained = this.#gain(shard);
        if (starting) first.push(gained);
      },
      lost: (shard, because) => { this.#lose(shard, because); },
    });
    starting = false;
    await Promise.race([Promise.all(first), this.#pause(START_MS)]);
  }

  leads(shard: number): boolean { return this.#led.has(shard) && this.#deps.leases.lease(shard)?.held() === true; }

  get shards(): readonly number[] { return [...this.#led].sort((a, b) => a - b); }

  /** Stops deciding for all shards, for good. What is under way goes on; `giveUp` comes after it. */
  stop(): void {
    this.#over = true;
    this.#unfollow?.();
    this.#unfollow = undefined;
    this.#deps.leases.leave();
    for (const shard of [...this.#led]) this.#deps.follow(shard);
    this.#led.clear();
  }

  async giveUp(): Promise<void> {
    this.#epochs.clear();
    const { leases } = this.#deps;
    const held = Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => leases.lease(shard) !== undefined);
    await Promise.all(held.map((shard) => leases.giveUp(shard)));
  }

  async #gain(shard: number): Promise<void> {
    const { leases, log, caughtUp, lead } = this.#deps;
    const lease = leases.lease(shard);
    if (!lease) return;
    this.#epochs.set(shard, lease.epoch);
    const still = (): boolean => this.#unfollow !== undefined && this.#epochs.get(shard) === lease.epoch && lease.held();
    // The listener may be called before `follow` has returned.
    await Promise.resolve();
    for (;;) {
      try {
        await caughtUp();
        break;
      } catch (error) {
        if (!still()) return;
        log.warn({ shard, epoch: lease.epoch, error }, 'a shard is not led yet: the mirror is behind');
        await this.#pause(CATCH_UP_AGAIN_MS);
      }
    }
    if (!still()) return;
    this.#led.add(shard);
    this.#tell(shard, lease.epoch);
    lead(shard);
  }

  /** One line for all that are gained within a moment. */
  #tell(shard: number, epoch: number): void {
    this.#untold.set(shard, epoch);
    if (this.#untold.size > 1) return;
    const { clock, log } = this.#deps;
    clock.at(clock.now() + TELL_MS, () => {
      log.info({ shards: rangesOf([...this.#untold.keys()]), newestEpoch: Math.max(...this.#untold.values()) }, 'shards led');
      this.#untold.clear();
    });
  }

  #lose(shard: number, because: 'gone' | 'wanted-elsewhere'): void {
    if (this.#led.delete(shard)) {
      this.#deps.log.info({ shard, because }, 'shard no longer led');
      this.#deps.follow(shard);
    }
    this.#epochs.delete(shard);
    if (because === 'gone') return;
    const over = Promise.race([this.#deps.drained(), this.#pause(DRAIN_MS)]);
    over.then(() => this.#deps.leases.giveUp(shard))
      .catch((error: unknown) => { this.#deps.log.error({ shard, error }, 'a shard could not be handed over'); });
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => { this.#deps.clock.at(this.#deps.clock.now() + ms, resolve); });
  }
}

/** As `0-15` or `1 4-7`: short, however many there are. */
const rangesOf = (numbers: readonly number[]): string => {
  const ranges: { readonly from: number; to: number }[] = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && number === last.to + 1) last.to = number;
    else ranges.push({ from: number, to: number });
  }
  return ranges.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`)).join(' ');
};
