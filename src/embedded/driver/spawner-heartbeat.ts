import type { Clock } from '../../contracts/clock.ts';

export interface HeartbeatEvents {
  /** At most one beat is unanswered. */
  ask(): void;
  /** After about 2 s. */
  silent(): void;
  /** Called with each beat during the silence. */
  missed(): void;
  back(): void;
  /** After about 20 s. Called once; no beats follow. */
  givenUp(): void;
}

export const BEAT_MS = 500;
/** At most 2.5 s after the last answer. */
const SILENT_AFTER = 4;
const GIVEN_UP_AFTER = 40;

/**
 * Notices a silent peer by counting this process's own beats. After a stop of the daemon or its VM,
 * a timer would end a healthy spawner.
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

  /** Any message counts. */
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
