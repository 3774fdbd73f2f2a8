import type { SandboxSnapshot } from './sandbox-snapshot.ts';

/** Of all pools: few enough for each to be answered before it counts as late, enough to keep a store busy. */
const MOST = 32;
/** Of one pool, at a time, so that a large one lets others through. */
const SHARE = 8;

/**
 * The ends that nobody's request waits for, such as of a pool's surplus: a few at one time. A thousand at once would stand in
 * the way of requests, and be late themselves, and each late one is then looked at uncached. A pool that has more to end is
 * gone on with as soon as others are through.
 */
export class Endings {
  readonly #goOn: (poolUid: string) => void;
  /** Told to end, and not durably so yet; and of which pool. */
  readonly #underWay = new Map<string, string>();
  /** Pools that have more to end. Those of which none is under way come first. */
  readonly #waiting = new Set<string>();
  readonly #hungry = new Set<string>();

  constructor(goOn: (poolUid: string) => void) { this.#goOn = goOn; }

  /**
   * Tells those to end that there is room for, out of what `candidates` gives of the pool; `tell` answers false where no more
   * need to end. Others of the pool's are looked for later.
   */
  end(poolUid: string, candidates: (poolUid: string, most: number) => readonly string[], tell: (id: string) => boolean): void {
    const room = this.#roomFor(poolUid);
    if (room === 0) return;
    for (const id of candidates(poolUid, room)) {
      this.#waiting.add(poolUid);
      this.#underWay.set(id, poolUid);
      if (tell(id)) continue;
      this.#underWay.delete(id);
      return;
    }
  }

  /** Hears of each move of each instance; undefined: it is no more. */
  moved(id: string, snapshot: Pick<SandboxSnapshot, 'path'> | undefined): void {
    if (snapshot && UNDER_WAY.has(snapshot.path)) return;
    if (!this.#underWay.delete(id) || this.#underWay.size > MOST / 2) return;
    const pools = new Set([...this.#hungry, ...this.#waiting]);
    this.#hungry.clear();
    this.#waiting.clear();
    for (const poolUid of pools) this.#goOn(poolUid);
  }

  /** With none it waits. */
  #roomFor(poolUid: string): number {
    const isServed = [...this.#underWay.values()].includes(poolUid);
    const room = isServed && this.#hungry.size > 0 ? 0 : Math.min(SHARE, MOST - this.#underWay.size);
    if (room === 0) (isServed ? this.#waiting : this.#hungry).add(poolUid);
    return room;
  }
}

/** Its record may still be there as if nothing were. */
const UNDER_WAY: ReadonlySet<string> = new Set(['judging', 'retiring', 'looking', 'unretired', 'releasing', 'unnoted'].map((state) => `stopping.${state}`));
