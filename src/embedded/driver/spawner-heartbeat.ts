import type { Clock } from '../../contracts/clock.ts';

export interface HeartbeatEvents {
  /** Ask for a sign of life. At most one is unanswered. */
  ask(): void;
  /** Nothing was heard for about two seconds. */
  silent(): void;
  /** With each beat for as long as that lasts, from the first on. */
  missed(): void;
  /** Something was heard again. */
  back(): void;
  /** Nothing was heard for some twenty seconds. Once; nothing is asked afterwards. */
  givenUp(): void;
}

export const BEAT_MS = 500;
/** Unanswered beats: with the one that is asked first, at most 2.5 s from the last sign of life. */
const SILENT_AFTER = 4;
const GIVEN_UP_AFTER = 40;

/**
 * Notices that a peer does not answer, such as a spawner that got SIGSTOP. It counts this process'
 * own beats instead of time: a user can stop the daemon, or pause its VM or container, for minutes.
 * Counted by time, the daemon would then end a healthy spawner.
 */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #events: HeartbeatEvents;
  #asked = false;
  #missed = 0;
  #callOff: () => void = () => {};

  constructor(clock: Clock, events: HeartbeatEvents) {
    this.#clock = clock;
    this.#events = events;
  }

  start(): void {
    this.#callOff = this.#clock.at(this.#clock.now() + BEAT_MS, () => this.#beat());
  }

  stop(): void {
    this.#callOff();
  }

  get silent(): boolean {
    return this.#missed >= SILENT_AFTER;
  }

  /** Whatever comes from the peer shows that it lives. */
  heard(): void {
    const wasSilent = this.silent;
    this.#asked = false;
    this.#missed = 0;
    if (wasSilent) this.#events.back();
  }

  #beat(): void {
    if (this.#asked) this.#missed += 1;
    else this.#events.ask();
    this.#asked = true;
    if (this.#missed >= GIVEN_UP_AFTER) return this.#events.givenUp();
    this.start();
    if (this.#missed === SILENT_AFTER) this.#events.silent();
    if (this.silent) this.#events.missed();
  }
}
