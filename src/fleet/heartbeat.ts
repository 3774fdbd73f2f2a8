import type { Http2Session } from 'node:http2';
import type { Clock } from '../contracts/clock.ts';

export const HEARTBEAT_MS = 5_000;
/** A link of which nothing was heard for so long is dead. */
export const DEAD_MS = 15_000;
/** How often it is looked whether anything came, and whether the connection is there. */
const LOOK_MS = 1_000;
/** For anything to be heard, after a look out of turn. */
export const PROBE_MS = 1_500;

export interface HeartbeatTerms {
  readonly clock: Clock;
  /** Counts bytes of the other end: any show that it lives, an answer to a PING or not. */
  readonly received: () => number;
  /** The connection is no more, which nothing else may have said. */
  readonly isGone: () => boolean;
  /** A PING was answered. */
  readonly answered?: (tookMs: number) => void;
  /** Something came from the other end. */
  readonly heard: () => void;
  /** Once: nothing has come from it for too long. */
  readonly dead: (why: string) => void;
}

/**
 * Sends a PING of HTTP/2 every 5 s, and finds a link dead of which nothing comes for 15 s, as of
 * one that was cut without a word, or whose connection is gone. `probe` looks at once: a link that
 * says nothing for 1.5 s is silent until it says something, and is not cut for it, since it may be
 * slow alone.
 */
export class Heartbeat {
  readonly #session: Http2Session;
  readonly #terms: HeartbeatTerms;
  readonly #waiting = new Set<() => void>();
  #lastHeard: number;
  #received = 0;
  #latencyMs = 0;
  #isSilent = false;
  #callOff: () => void = () => {};
  #callOffEnd: () => void = () => {};
  #callOffLook: () => void = () => {};
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
    this.#lookAndAgain();
  }

  stop(): void {
    this.#callOff();
    this.#callOffEnd();
    this.#callOffLook();
    this.#callOffProbe?.();
    this.#waiting.clear();
  }

  get isSilent(): boolean {
    if (this.#isSilent) this.#look();
    return this.#isSilent;
  }

  /** Notes, and says, whether anything came since the last look. */
  #look(): boolean {
    const received = this.#terms.received();
    if (received === this.#received) return false;
    this.#received = received;
    this.#lastHeard = this.#terms.clock.now();
    this.#isSilent = false;
    this.#callOffProbe?.();
    this.#callOffProbe = undefined;
    this.#waiting.clear();
    this.#terms.heard();
    return true;
  }

  /** Calls `silent` where nothing is heard in time; returns the way to call that off. */
  probe(silent: () => void): () => void {
    this.#look();
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
    if (this.#look()) return;
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

  #lookAndAgain(): void {
    const { clock, isGone, dead } = this.#terms;
    this.#callOffLook = clock.at(clock.now() + LOOK_MS, () => {
      this.#look();
      if (isGone()) return dead('the connection ended');
      this.#lookAndAgain();
    });
  }

  /** Looks at the very moment, however much later than a PING its answer came. */
  #endUnlessHeard(): void {
    const { clock, dead } = this.#terms;
    this.#callOffEnd = clock.at(this.#lastHeard + DEAD_MS, () => {
      this.#look();
      if (clock.now() - this.#lastHeard < DEAD_MS) return this.#endUnlessHeard();
      dead('nothing was heard of it for 15 s');
    });
  }

  #ping(): void {
    if (this.#session.destroyed || this.#session.closed) return;
    this.#session.ping((error, tookMs) => {
      if (error) return;
      this.#latencyMs = tookMs;
      this.#look();
      this.#terms.answered?.(tookMs);
    });
  }
}
