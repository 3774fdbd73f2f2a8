import type { Clock } from '../../contracts/clock.ts';
import type { HeldInstance } from './held-instance.ts';

/** `over`: its time is. `gone`: its client is. `deleted`: its pool is, or is about to be. */
export type EndOfWaiting = 'over' | 'gone' | 'deleted' | 'stopping';

export interface ClaimQueueDeps {
  readonly clock: Clock;
  /** Acquires an idle instance of the pool. */
  readonly acquire: (poolUid: string) => HeldInstance | undefined;
}

const FIRST_PAUSE_MS = 25;
const LAST_PAUSE_MS = 250;

/**
 * The claims of this process that wait for an instance, by pool, in their order: what turns idle is
 * handed to the first who has none, at once. Whose turn it is over all replicas the admission says;
 * where it says no, the line pauses for a moment.
 */
export class ClaimQueue {
  readonly #deps: ClaimQueueDeps;
  readonly #lines = new Map<string, Line>();
  #stopping = false;

  constructor(deps: ClaimQueueDeps) {
    this.#deps = deps;
  }

  /** Whether claims are told to go elsewhere. */
  get stopping(): boolean {
    return this.#stopping;
  }

  /** Counts the claims that wait for the pool in this process. */
  waiting(poolUid: string): number {
    return this.#lines.get(poolUid)?.standing.size ?? 0;
  }

  /** Counts the claims that wait in this process. */
  get size(): number {
    let all = 0;
    for (const { standing } of this.#lines.values()) all += standing.size;
    return all;
  }

  /** The last place in this process; to be left. */
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

  /** One of the pool has turned idle: an end to any pause. */
  turnedIdle(poolUid: string): void {
    const line = this.#lines.get(poolUid);
    if (!line) return;
    line.pauseMs = 0;
    this.#resume(poolUid, line);
  }

  /** One of the pool may be had again. */
  offer(poolUid: string): void {
    const line = this.#lines.get(poolUid);
    if (!line || line.cancelPause) return;
    for (const { hand } of line.standing) {
      if (!hand) continue; // tries already
      const offer = this.#deps.acquire(poolUid);
      if (!offer) return;
      hand(offer);
    }
  }

  /** Ends the waiting for the pool. */
  end(poolUid: string, why: EndOfWaiting = 'deleted'): void {
    for (const { hand } of this.#lines.get(poolUid)?.standing ?? []) hand?.(why);
  }

  /** Ends all waiting, now and from now on. */
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

/** `hand`: while it has nothing to try. */
interface Standing {
  hand: ((end: HeldInstance | EndOfWaiting) => void) | undefined;
}
interface Line {
  readonly standing: Set<Standing>;
  pauseMs: number;
  cancelPause: (() => void) | undefined;
}

/**
 * The place of one claim, which calls `next` again where what it was handed was lost to another.
 */
export interface QueueEntry {
  readonly next: (
    until: number,
    signal: AbortSignal | undefined,
  ) => Promise<HeldInstance | EndOfWaiting>;
  /**
   * It was not its turn: nobody of the line tries for a moment, unless another turns idle. To be
   * called before the instance is released.
   */
  readonly pause: () => void;
  readonly leave: () => void;
}
