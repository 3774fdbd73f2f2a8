import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';

export interface HistoryRoomDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /**
   * Deletes up to this many of the largest owner's oldest records while Redis uses more than the
   * share of its memory.
   */
  readonly makeRoom: (
    share: number,
    most: number,
  ) => Promise<{ readonly forgotten: number; readonly used: number }>;
}

/** Share of `maxmemory`, well before claims would fail. */
const ROOM_SHARE = 0.65;
/** Above this share, data other than history must be the cause. */
const FULL_SHARE = 0.7;
const LOOK_MS = 5_000;
/** New records that trigger an early check. */
const LOOK_RECORDS = 200;
const STEP_MS = 20;
/** Blocks Redis for a millisecond or two. */
const STEP_RECORDS = 100;
const SAY_MS = 3_600_000;
const LOG_MS = 600_000;

/**
 * When memory runs short, deletes the oldest records of the owner with the most. Any replica may do
 * so, since each step checks again whether it is needed.
 */
export class HistoryRoom {
  readonly #deps: HistoryRoomDeps;
  #cancel: (() => void) | undefined;
  #step: Promise<void> = Promise.resolve();
  #running = false;
  #recorded = 0;
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

  recorded(): void {
    this.#recorded += 1;
    if (this.#recorded !== LOOK_RECORDS || !this.#cancel) return; // otherwise a step is running
    this.#cancel();
    this.#lookIn(0);
  }

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
            `Redis is short of memory: ${this.#forgotten} finished sandboxes were deleted ` +
              'before history.retention; raise maxmemory, or shorten the retention',
          ]
        : []),
      ...(this.#full === undefined
        ? []
        : [
            `Redis is ${Math.round(this.#full * 100)} % full, and not because of history: ` +
              'claims are refused when it is full; raise maxmemory',
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
            'history-deleted-early',
          );
        }
      }
    } catch (error) {
      log.debug({ error }, 'history-memory-not-read'); // the next check retries
    }
    this.#lookIn(this.#recorded >= LOOK_RECORDS ? Math.min(pause, STEP_MS) : pause);
  }
}
