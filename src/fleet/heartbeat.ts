import type { Http2Session } from 'node:http2';
import type { Clock } from '../contracts/clock.ts';

export const HEARTBEAT_MS = 5_000;
/** A link of which nothing was heard for so long is dead. */
export const DEAD_MS = 15_000;
/** For anything to be heard, after a look out of turn. */
export const PROBE_MS = 1_500;

export interface HeartbeatTerms {
  readonly clock: Clock;
  /** Something came from the other end. */
  readonly heard: () => void;
  /** Once: nothing has come from it for too long. */
  readonly dead: (why: string) => void;
}

/**
 * Sends a PING of HTTP/2 every 5 s, and finds a link dead of which nothing comes for 15 s, as of
 * one that was cut without a word. `probe` looks at once: a link that says nothing for 1.5 s is
 * silent until it says something, and is not cut for it, since it may be slow alone.
 */
export class Heartbeat {
  readonly #session: Http2Session;
  readonly #terms: HeartbeatTerms;
  readonly #waiting = new Set<() => void>();
  #lastHeard: number;
  #latencyMs = 0;
  #isSilent = false;
  #callOff: () => void = () => {};
  #callOffEnd: () => void = () => {};
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
    this.#pingAndAgain();
    this.#endUnlessHeard();
  }

  stop(): void {
    this.#callOff();
    this.#callOffEnd();
    this.#callOffProbe?.();
    this.#waiting.clear();
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** For every message of the other end: each shows that it lives, an answer to a PING or not. */
  heard(): void {
    this.#lastHeard = this.#terms.clock.now();
    this.#isSilent = false;
    this.#callOffProbe?.();
    this.#callOffProbe = undefined;
    this.#waiting.clear();
    this.#terms.heard();
  }

  /** Calls `silent` where nothing is heard in time; returns the way to call that off. */
  probe(silent: () => void): () => void {
    this.#waiting.add(silent);
    if (!this.#callOffProbe) {
      const { clock } = this.#terms;
      this.#callOffProbe = clock.at(clock.now() + PROBE_MS, () => this.#foundSilent());
      this.#ping();
    }
    return () => this.#waiting.delete(silent);
  }

  #foundSilent(): void {
    this.#callOffProbe = undefined;
    this.#isSilent = true;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const silent of waiting) silent();
  }

  #pingAndAgain(): void {
    const { clock } = this.#terms;
    this.#ping();
    this.#callOff = clock.at(clock.now() + HEARTBEAT_MS, () => this.#pingAndAgain());
  }

  /** Looks at the very moment, however much later than a PING its answer came. */
  #endUnlessHeard(): void {
    const { clock, dead } = this.#terms;
    this.#callOffEnd = clock.at(this.#lastHeard + DEAD_MS, () => {
      if (clock.now() - this.#lastHeard < DEAD_MS) return this.#endUnlessHeard();
      dead('nothing was heard of it for 15 s');
    });
  }

  #ping(): void {
    if (this.#session.destroyed || this.#session.closed) return;
    this.#session.ping((error, tookMs) => {
      if (!error) this.#latencyMs = tookMs; // that it lives, the message itself has shown
    });
  }
}
