import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';

export interface HistoryRoomDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /**
   * Forgets so many of the loudest owner's oldest, at most, while more than the share of Redis'
   * memory is in use; returns how many, and the share.
   */
  readonly makeRoom: (
    share: number,
    most: number,
  ) => Promise<{ readonly forgotten: number; readonly used: number }>;
}

/**
 * The part of Redis' `maxmemory` beyond which history is forgotten early, well before claims would
 * be refused for want of memory.
 */
const ROOM_SHARE = 0.65;
/** The part of `maxmemory` beyond which others must be using it, while no history is left. */
const FULL_SHARE = 0.7;
const LOOK_MS = 5_000;
/** Records after which it is looked sooner, however fast they come. */
const LOOK_RECORDS = 200;
const STEP_MS = 20;
/** At one time: Redis does nothing else for a millisecond or two. */
const STEP_RECORDS = 100;
/** Milliseconds for which it is said that history was forgotten early. */
const SAY_MS = 3_600_000;
const LOG_MS = 600_000;

/**
 * Keeps history from filling Redis: the oldest of the owner that has most is forgotten, before its
 * time, where memory runs short. Any replica may do so, since each step looks for itself whether it
 * is still needed. Says what it did in the log, a metric and the warnings of readiness.
 */
export class HistoryRoom {
  readonly #deps: HistoryRoomDeps;
  #cancel: (() => void) | undefined;
  #step: Promise<void> = Promise.resolve();
  #running = false;
  #recorded = 0;
  /** Since this replica started. */
  #forgotten = 0;
  #lastAt = Number.NEGATIVE_INFINITY;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #full: number | undefined;

  constructor(deps: HistoryRoomDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#lookIn(0);
  }

  /** Hears of each record. */
  recorded(): void {
    this.#recorded += 1;
    if (this.#recorded !== LOOK_RECORDS || !this.#cancel) return; // else a step is under way
    this.#cancel();
    this.#lookIn(0);
  }

  /** Resolves when the step under way, if any, has ended. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancel?.();
    await this.#step;
  }

  warnings(): readonly string[] {
    const { clock } = this.#deps;
    return [
      ...(clock.now() - this.#lastAt < SAY_MS
        ? [
            `Redis runs short of memory: ${this.#forgotten} finished sandboxes were ` +
              'forgotten before history.retention was over; raise maxmemory, or shorten it',
          ]
        : []),
      ...(this.#full === undefined
        ? []
        : [
            `Redis is ${Math.round(this.#full * 100)} % full, and not by history: when it ` +
              'is, claims are refused; raise maxmemory',
          ]),
    ];
  }

  #lookIn(delayMs: number): void {
    if (!this.#running) return;
    const { clock } = this.#deps;
    this.#cancel = clock.at(clock.now() + delayMs, () => {
      this.#step = this.#look();
    });
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { clock, log, metrics, makeRoom } = this.#deps;
    let pause = LOOK_MS;
    this.#cancel = undefined;
    this.#recorded = 0;
    try {
      const { forgotten, used } = await makeRoom(ROOM_SHARE, STEP_RECORDS);
      this.#full = forgotten === 0 && used > FULL_SHARE ? used : undefined;
      if (forgotten > 0) {
        pause = STEP_MS;
        this.#forgotten += forgotten;
        metrics.count('sandpool_history_forgotten_early_total', {}, forgotten);
        this.#lastAt = clock.now();
        if (this.#lastAt - this.#loggedAt >= LOG_MS) {
          this.#loggedAt = this.#lastAt;
          log.warn(
            { forgotten: this.#forgotten, usedPercent: Math.round(used * 100) },
            'history is forgotten early: Redis runs short of memory',
          );
        }
      }
    } catch (error) {
      log.debug({ error }, 'room for history not looked at'); // it is away, and asked again
    }
    this.#lookIn(this.#recorded >= LOOK_RECORDS ? Math.min(pause, STEP_MS) : pause);
  }
}
