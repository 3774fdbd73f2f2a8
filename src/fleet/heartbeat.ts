import type { Http2Session } from 'node:http2';
import type { Clock } from '../contracts/clock.ts';

export const HEARTBEAT_MS = 5_000;
/** A link of which nothing was heard for so long is dead. */
export const DEAD_MS = 15_000;
/** For an answer to a look out of turn. */
export const PROBE_MS = 1_500;

export interface HeartbeatTerms {
  readonly clock: Clock;
  /** The other end answered. */
  readonly heard: () => void;
  /** Once: it has not answered for too long. */
  readonly dead: (why: string) => void;
}

/**
 * Sends a PING of HTTP/2 every 5 s, and finds a link dead whose other end answers none for 15 s, as
 * one does that was cut without a word. `probe` looks at once, and waits 1.5 s.
 */
export class Heartbeat {
  readonly #session: Http2Session;
  readonly #terms: HeartbeatTerms;
  #lastHeard: number;
  #latencyMs = 0;
  #callOff: () => void = () => {};
  #callOffProbe: (() => void) | undefined;

  constructor(session: Http2Session, terms: HeartbeatTerms) {
    this.#session = session;
    this.#terms = terms;
    this.#lastHeard = terms.clock.now();
  }

  /** How long the last one took there and back. */
  get latencyMs(): number {
    return this.#latencyMs;
  }

  start(): void {
    this.#terms.heard();
    this.#ping();
    this.#arm();
  }

  stop(): void {
    this.#callOff();
    this.#callOffProbe?.();
  }

  probe(): void {
    if (this.#callOffProbe) return;
    const { clock, dead } = this.#terms;
    const askedAt = clock.now();
    this.#callOffProbe = clock.at(askedAt + PROBE_MS, () => {
      this.#callOffProbe = undefined;
      if (this.#lastHeard < askedAt) dead('it does not answer');
    });
    this.#ping();
  }

  #arm(): void {
    const { clock, dead } = this.#terms;
    this.#callOff = clock.at(clock.now() + HEARTBEAT_MS, () => {
      if (clock.now() - this.#lastHeard >= DEAD_MS) return dead('nothing was heard of it for 15 s');
      this.#ping();
      this.#arm();
    });
  }

  #ping(): void {
    if (this.#session.destroyed || this.#session.closed) return;
    this.#session.ping((error, tookMs) => {
      if (error) return;
      this.#latencyMs = tookMs;
      this.#lastHeard = this.#terms.clock.now();
      this.#terms.heard();
    });
  }
}
