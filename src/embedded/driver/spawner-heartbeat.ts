import type { Clock } from '../../contracts/clock.ts';

export interface HeartbeatEvents {
  /** Sends a beat. At most one beat is unanswered. */
  ask(): void;
  /** The peer has been silent for about two seconds. */
  silent(): void;
  /** Called with each beat while the silence lasts, the first one included. */
  missed(): void;
  /** The peer has answered again. */
  back(): void;
  /** The peer has been silent for about twenty seconds. Called once; no beats follow. */
  givenUp(): void;
}

export const BEAT_MS = 500;
/** Unanswered beats until silence; with the first beat, at most 2.5 s after the last answer. */
const SILENT_AFTER = 4;
const GIVEN_UP_AFTER = 40;

/**
 * Notices that a peer does not answer, such as a spawner that got SIGSTOP. It counts this process's
 * own beats instead of time. A user can stop the daemon, or pause its VM, for minutes; a timer
 * would then end a healthy spawner.
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

  /** Any message from the peer shows that the peer is alive. */
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
