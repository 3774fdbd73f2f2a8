import type { Clock } from '../../contracts/clock.ts';
import type { SandboxTag } from '../../machines/sandbox/events.ts';

/**
 * Ends of all pools under way at once: few enough for each to be answered in time, enough to keep a
 * store busy.
 */
const MOST = 32;
/**
 * Ends under way of the pools of one namespace, so that one whose ends take their time leaves room
 * for others.
 */
const SHARE_OF_NAMESPACE = 24;
/** Ends under way of one pool, so that a large one lets others through. */
const SHARE = 8;
const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 60_000;
/** Pools whose pauses are remembered. */
const MOST_PAUSES = 1_000;

export interface RetirementLimiterDeps {
  readonly clock: Pick<Clock, 'now'>;
  /** The pool may end more now. */
  readonly goOn: (poolUid: string) => void;
  /** Has `goOn` called for the pool at that moment. */
  readonly goOnAt: (poolUid: string, at: number) => void;
  /** Undefined where the pool is not known. */
  readonly namespaceOf: (poolUid: string) => string | undefined;
}

interface UnderWay {
  readonly poolUid: string;
  readonly namespace: string;
}

/** `failed`: those whose end was refused, or not answered in time, and that still try. */
interface Pause {
  readonly failed: Set<string>;
  ms: number;
  until: number;
}

/**
 * Limits the ends that nobody's request waits for, such as of a pool's surplus, to a few at one
 * time. A thousand at once would stand in the way of requests, and be late themselves, and each
 * late one is then looked at uncached. A pool that has more to end is gone on with as soon as
 * others are through. An end that fails makes room at once, and its pool pauses, longer each time:
 * after a pause it tries one alone. So a namespace that refuses all deletions holds up nobody.
 */
export class RetirementLimiter {
  readonly #deps: RetirementLimiterDeps;
  /** Told to end, and not durably so yet. */
  readonly #underWay = new Map<string, UnderWay>();
  /** Pauses of pools whose last end failed; the one that failed last is the last. */
  readonly #pauses = new Map<string, Pause>();
  /** Pools that have more to end. Those of which none is under way come first. */
  readonly #waiting = new Set<string>();
  readonly #hungry = new Set<string>();
  /** Pools that were gone on with since the last end: what they wait for is another one. */
  readonly #goneOn = new Set<string>();
  /** Pools that are gone on with next, in this order. */
  readonly #next = new Set<string>();
  #goesOn = false;
  /** Which is gone on with just now. */
  #turn: string | undefined;

  constructor(deps: RetirementLimiterDeps) {
    this.#deps = deps;
  }

  /**
   * Tells those to end that there is room for, out of what `candidates` gives of the pool; `tell`
   * returns false where no more need to end. Others of the pool's are looked for later.
   */
  end(
    poolUid: string,
    candidates: (poolUid: string, most: number) => readonly string[],
    tell: (id: string) => boolean,
  ): void {
    const room = this.#roomFor(poolUid);
    if (room === 0) return;
    const namespace = this.#namespaceOf(poolUid);
    for (const id of candidates(poolUid, room)) {
      this.#waiting.add(poolUid);
      this.#underWay.set(id, { poolUid, namespace });
      if (tell(id)) continue;
      this.#underWay.delete(id);
      return;
    }
  }

  /** Hears of each move of each instance of the pool. */
  moved(poolUid: string, id: string, tags: ReadonlySet<SandboxTag>): void {
    if (tags.has('endUnderWay')) return;
    const isUnderWay = this.#underWay.delete(id);
    if (tags.has('endFailed')) {
      if (isUnderWay) this.#failed(poolUid, id);
    } else if (this.#pauses.get(poolUid)?.failed.delete(id) || isUnderWay) {
      // Its wakes may all be past, and nothing else of it be under way.
      if (tags.has('endDurable') && this.#pauses.delete(poolUid)) this.#deps.goOn(poolUid);
    }
    if (!isUnderWay || this.#underWay.size > MOST - SHARE) return;
    this.#goneOn.clear();
    this.#goOnWithNext();
  }

  /**
   * With as many pools as there is room for one end each: hundreds may wait, and each end makes
   * room for one. Where they leave room, with the next ones, each once.
   */
  #goOnWithNext(): void {
    const roomIn = new Map<string, number>();
    let goneOn = 0;
    for (const each of [...this.#hungry, ...this.#waiting]) {
      if (goneOn >= MOST - this.#underWay.size) break;
      if (this.#goneOn.has(each) || this.#next.has(each)) continue;
      const namespace = this.#namespaceOf(each);
      const room = roomIn.get(namespace) ?? this.#shareOf(each);
      roomIn.set(namespace, room - 1);
      if (room <= 0) continue;
      goneOn += 1;
      this.#goneOn.add(each);
      this.#next.add(each);
    }
    this.#goOnSoon();
  }

  /**
   * Goes on with one pool in each turn of the event loop: many ends are answered at once, a pool
   * that looks again may take a while, and requests are to be read in between.
   */
  #goOnSoon(): void {
    const [next] = this.#next;
    if (this.#goesOn || next === undefined) return;
    this.#goesOn = true;
    setImmediate(() => {
      this.#goesOn = false;
      for (const line of [this.#next, this.#hungry, this.#waiting]) line.delete(next);
      this.#turn = next;
      try {
        this.#deps.goOn(next);
      } finally {
        this.#turn = undefined;
        if (this.#next.size > 0) this.#goOnSoon();
        else this.#goOnWithNext();
      }
    });
  }

  #failed(poolUid: string, id: string): void {
    const now = this.#deps.clock.now();
    const pause = this.#pauses.get(poolUid) ?? { failed: new Set<string>(), ms: 0, until: 0 };
    pause.failed.add(id);
    // Those that were told together fail together.
    if (now >= pause.until)
      pause.ms = Math.min(Math.max(2 * pause.ms, FIRST_PAUSE_MS), LAST_PAUSE_MS);
    pause.until = now + pause.ms;
    this.#pauses.delete(poolUid);
    this.#pauses.set(poolUid, pause);
    const [oldest] = this.#pauses.keys();
    if (this.#pauses.size > MOST_PAUSES && oldest !== undefined) this.#pauses.delete(oldest);
    this.#waiting.delete(poolUid);
    this.#hungry.delete(poolUid);
    this.#deps.goOnAt(poolUid, pause.until);
  }

  /** With none it waits. */
  #roomFor(poolUid: string): number {
    const isServed = this.#isServed(poolUid);
    const pause = this.#pauses.get(poolUid);
    if (pause) {
      if (this.#deps.clock.now() < pause.until) this.#deps.goOnAt(poolUid, pause.until);
      if (this.#deps.clock.now() < pause.until || isServed || pause.failed.size >= SHARE) return 0;
    }
    const others = this.#next.size - (this.#next.has(poolUid) ? 1 : 0);
    const isOutOfTurn = others > 0 && this.#turn !== poolUid;
    // What it waits for is its turn then, and no end.
    if (isOutOfTurn) this.#goneOn.delete(poolUid);
    const givesWay = isOutOfTurn || (isServed && this.#hungry.size > 0);
    const room = givesWay ? 0 : this.#shareOf(poolUid);
    if (room === 0) this.#wait(poolUid);
    return pause ? Math.min(room, 1) : room;
  }

  #wait(poolUid: string): void {
    (this.#isServed(poolUid) ? this.#waiting : this.#hungry).add(poolUid);
  }

  #isServed(poolUid: string): boolean {
    for (const one of this.#underWay.values()) if (one.poolUid === poolUid) return true;
    return false;
  }

  /**
   * Says how many more the pool may end by what all pools, and those of its namespace, are ending.
   */
  #shareOf(poolUid: string): number {
    const namespace = this.#namespaceOf(poolUid);
    let ofNamespace = 0;
    for (const one of this.#underWay.values()) if (one.namespace === namespace) ofNamespace += 1;
    const left = Math.min(MOST - this.#underWay.size, SHARE_OF_NAMESPACE - ofNamespace);
    return Math.max(0, Math.min(SHARE, left));
  }

  #namespaceOf(poolUid: string): string {
    return this.#deps.namespaceOf(poolUid) ?? `of ${poolUid}`;
  }
}
