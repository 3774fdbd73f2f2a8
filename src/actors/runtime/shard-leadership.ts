import type { Clock } from '../../contracts/clock.ts';
import type { Leases } from '../../contracts/coordination/leases.ts';
import type { Log } from '../../contracts/log.ts';
import { SHARDS } from '../../model/shards.ts';

export interface ShardLeadershipDeps {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly log: Log;
  /** Resolves when the mirror shows all writes from before the call. */
  readonly caughtUp: () => Promise<void>;
  readonly lead: (shard: number) => void;
  readonly follow: (shard: number) => void;
  readonly drained: () => Promise<void>;
}

const CATCH_UP_AGAIN_MS = 500;
/** Another replica gets the shard after this wait for the mirror. */
const CATCH_UP_MS = 5_000;
const DRAIN_MS = 2_000;
/** A large mirror takes seconds to catch up, but claims need no leader. */
const START_MS = 250;
const TELL_MS = 100;

/**
 * A lease is not enough to lead: the mirror must first contain the previous leader's writes, so
 * that nothing is launched twice. Work in progress ends before a lease is handed over.
 */
export class ShardLeadership {
  readonly #deps: ShardLeadershipDeps;
  readonly #epochs = new Map<number, number>();
  readonly #led = new Set<number>();
  readonly #unpublished = new Map<number, number>();
  #unfollow: (() => void) | undefined;
  #over = false;
  /** Takes no leases while its mirror is behind. */
  #behind = false;
  #started = false;
  #paused = false;
  #handedOver: Promise<void> = Promise.resolve();

  constructor(deps: ShardLeadershipDeps) {
    this.#deps = deps;
  }

  /** Resolves when it leads all shards with a lease, or after START_MS. */
  async start(): Promise<void> {
    this.#started = true;
    if (this.#over || this.#paused) return;
    const first: Promise<void>[] = [];
    let starting = true;
    this.#unfollow = this.#deps.leases.follow({
      gained: (shard) => {
        const gained = this.#gain(shard);
        if (starting) first.push(gained);
      },
      lost: (shard, because) => {
        this.#lose(shard, because);
      },
    });
    starting = false;
    await Promise.race([Promise.all(first), this.#pause(START_MS)]);
  }

  leads(shard: number): boolean {
    return this.#led.has(shard) && this.#deps.leases.lease(shard)?.held() === true;
  }

  get shards(): readonly number[] {
    return [...this.#led].sort((a, b) => a - b);
  }

  pause(): void {
    if (this.#paused || this.#over) return;
    this.#paused = true;
    this.#leaveAll();
    this.#handedOver = this.#deps
      .drained()
      .then(() => this.giveUp())
      .catch((error: unknown) => {
        this.#deps.log.error({ error }, 'shards-not-released');
      });
  }

  resume(): void {
    this.#paused = false;
    this.#handedOver
      .then(() => (this.#paused || this.#over ? undefined : this.#comeBack()))
      .catch((error: unknown) => {
        this.#deps.log.error({ error }, 'leading-not-resumed');
      });
  }

  async #comeBack(): Promise<void> {
    if (!this.#behind) this.#deps.leases.join();
    if (this.#started && !this.#unfollow) await this.start();
  }

  /** For good. Work in progress continues; call `giveUp` after it. */
  stop(): void {
    this.#over = true;
    this.#leaveAll();
  }

  async giveUp(): Promise<void> {
    this.#epochs.clear();
    const { leases } = this.#deps;
    const held = Array.from({ length: SHARDS }, (_, shard) => shard).filter(
      (shard) => leases.lease(shard) !== undefined,
    );
    await Promise.all(held.map((shard) => leases.giveUp(shard)));
  }

  #leaveAll(): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
    this.#deps.leases.leave();
    const led = [...this.#led];
    this.#led.clear();
    for (const shard of led) this.#notify(shard, this.#deps.follow);
  }

  /** Never rejects. */
  async #gain(shard: number): Promise<void> {
    const { leases, clock } = this.#deps;
    const lease = leases.lease(shard);
    if (!lease) return;
    this.#epochs.set(shard, lease.epoch);
    const still = (): boolean =>
      this.#unfollow !== undefined && this.#epochs.get(shard) === lease.epoch && lease.held();
    // The listener may run before `follow` returns.
    await Promise.resolve();
    const until = clock.now() + CATCH_UP_MS;
    while (!(await this.#hasCaughtUp(until - clock.now(), { shard, epoch: lease.epoch }))) {
      if (!still()) return;
      // If the mirror is behind for one shard, it is for all shards gained in the meantime.
      if (this.#behind || clock.now() >= until) return await this.#standBack(shard);
      await this.#pause(Math.min(CATCH_UP_AGAIN_MS, until - clock.now()));
    }
    if (!still()) return;
    this.#led.add(shard);
    this.#tell(shard, lease.epoch);
    this.#notify(shard, this.#deps.lead);
  }

  /** Never rejects. */
  async #hasCaughtUp(withinMs: number, fields: object): Promise<boolean> {
    const { caughtUp, clock, log } = this.#deps;
    let cancel = (): void => undefined;
    const late = new Promise<void>((_, reject) => {
      cancel = clock.at(clock.now() + withinMs, () => {
        reject(new Error(`not within ${withinMs} ms`));
      });
    });
    try {
      await Promise.race([caughtUp(), late]);
      return true;
    } catch (error) {
      log.warn({ ...fields, error: String(error) }, 'mirror-behind');
      return false;
    } finally {
      cancel();
    }
  }

  /** Never rejects. */
  async #standBack(shard: number): Promise<void> {
    const { leases } = this.#deps;
    this.#epochs.delete(shard);
    const isFirst = !this.#behind;
    this.#behind = true;
    leases.leave();
    await leases.giveUp(shard);
    if (!isFirst) return;
    do await this.#pause(CATCH_UP_AGAIN_MS);
    while (!this.#over && !(await this.#hasCaughtUp(CATCH_UP_MS, {})));
    this.#behind = false;
    if (!this.#over && !this.#paused) leases.join();
  }

  /** An error of a listener does not change the leadership. */
  #notify(shard: number, report: (shard: number) => void): void {
    try {
      report(shard);
    } catch (error) {
      this.#deps.log.error({ shard, error: String(error) }, 'shard-listener-failed');
    }
  }

  #tell(shard: number, epoch: number): void {
    this.#unpublished.set(shard, epoch);
    if (this.#unpublished.size > 1) return;
    const { clock, log } = this.#deps;
    clock.at(clock.now() + TELL_MS, () => {
      log.info(
        {
          shards: rangesOf([...this.#unpublished.keys()]),
          newestEpoch: Math.max(...this.#unpublished.values()),
        },
        'shards-led',
      );
      this.#unpublished.clear();
    });
  }

  #lose(shard: number, because: 'gone' | 'wanted-elsewhere'): void {
    if (this.#led.delete(shard)) {
      this.#deps.log.info({ shard, because }, 'shard-no-longer-led');
      this.#notify(shard, this.#deps.follow);
    }
    this.#epochs.delete(shard);
    if (because === 'wanted-elsewhere') void this.#handOver(shard);
  }

  /** Waits for the work in progress, at most DRAIN_MS. Never rejects. */
  async #handOver(shard: number): Promise<void> {
    const { leases, drained, log } = this.#deps;
    const done = (async () => {
      await drained();
    })().catch((error: unknown) => {
      log.error({ shard, error: String(error) }, 'shard-handed-over-early');
    });
    await Promise.race([done, this.#pause(DRAIN_MS)]);
    await leases.giveUp(shard);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#deps.clock.at(this.#deps.clock.now() + ms, resolve);
    });
  }
}

/** Such as `0-15` or `1 4-7`. */
const rangesOf = (numbers: readonly number[]): string => {
  const ranges: { readonly from: number; to: number }[] = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && number === last.to + 1) last.to = number;
    else ranges.push({ from: number, to: number });
  }
  return ranges.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`)).join(' ');
};
