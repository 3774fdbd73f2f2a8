import type { Clock } from '../../contracts/clock.ts';
import type { SandboxTag } from '../../machines/sandbox/events.ts';

/** Few enough for timely answers, and enough to keep a store busy. */
const MOST = 32;
/** Lower than MOST, so that a slow namespace leaves capacity for others. */
const SHARE_OF_NAMESPACE = 24;
/** Low enough that a large pool does not block others. */
const SHARE = 8;
const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 60_000;
const MOST_PAUSES = 1_000;

export interface RetirementLimiterDeps {
  readonly clock: Pick<Clock, 'now'>;
  readonly goOn: (poolUid: string) => void;
  readonly goOnAt: (poolUid: string, at: number) => void;
  readonly namespaceOf: (poolUid: string) => string | undefined;
}

interface UnderWay {
  readonly poolUid: string;
  readonly namespace: string;
}

/** `failed`: instances that still retry after their end was refused or timed out. */
interface Pause {
  readonly failed: Set<string>;
  ms: number;
  until: number;
}

/**
 * Limits ends that no request waits for: a thousand at once would delay requests and time out.
 * After a failed end its pool pauses, longer each time, and retries only one. So a namespace that
 * refuses all deletions delays nobody else.
 */
export class RetirementLimiter {
  readonly #deps: RetirementLimiterDeps;
  /** Requested but not durable yet. */
  readonly #underWay = new Map<string, UnderWay>();
  readonly #pauses = new Map<string, Pause>();
  /** `#hungry` pools, without an end in progress, come first. */
  readonly #waiting = new Set<string>();
  readonly #hungry = new Set<string>();
  readonly #goneOn = new Set<string>();
  readonly #next = new Set<string>();
  #goesOn = false;
  #turn: string | undefined;

  constructor(deps: RetirementLimiterDeps) {
    this.#deps = deps;
  }

  /**
   * As many as capacity permits; the others follow later. `tell` returns false if no more need to
   * end.
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

  /** Call it after each transition of each instance of the pool. */
  moved(poolUid: string, id: string, tags: ReadonlySet<SandboxTag>): void {
    if (tags.has('endUnderWay')) return;
    const isUnderWay = this.#underWay.delete(id);
    if (tags.has('endFailed')) {
      if (isUnderWay) this.#failed(poolUid, id);
    } else if (this.#pauses.get(poolUid)?.failed.delete(id) || isUnderWay) {
      // No wake-up of the pool may be left, and no other end in progress.
      if (tags.has('endDurable') && this.#pauses.delete(poolUid)) this.#deps.goOn(poolUid);
    }
    if (!isUnderWay || this.#underWay.size > MOST - SHARE) return;
    this.#goneOn.clear();
    this.#goOnWithNext();
  }

  /** Counts one end for each pool. If they leave capacity, continues the next pools, each once. */
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
   * One pool per turn of the event loop: many ends finish at once and a pool's new plan may take
   * long, so requests get turns in between.
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
    // Ends requested together fail together, and count as one failure.
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

  /** If 0, queues the pool or waits for the end of its pause. */
  #roomFor(poolUid: string): number {
    const isServed = this.#isServed(poolUid);
    const pause = this.#pauses.get(poolUid);
    if (pause) {
      if (this.#deps.clock.now() < pause.until) this.#deps.goOnAt(poolUid, pause.until);
      if (this.#deps.clock.now() < pause.until || isServed || pause.failed.size >= SHARE) return 0;
    }
    const others = this.#next.size - (this.#next.has(poolUid) ? 1 : 0);
    const isOutOfTurn = others > 0 && this.#turn !== poolUid;
    // The pool waits for its turn, not for another end.
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
