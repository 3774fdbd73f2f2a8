import type { Clock } from '../../contracts/clock.ts';

export interface LivenessVerdicts {
  readonly ping: () => void;
  /** The peer is gone. */
  readonly dead: () => void;
  /** The peer may be alive, but has read no output for a minute. */
  readonly stalled: () => void;
}

const PING_EVERY_MS = 20_000;
const PONG_WITHIN_MS = 10_000;
const STALL_MS = 60_000;
/** Unconfirmed output, in bytes, beyond which a silent peer counts as stalled instead of dead. */
const OWED_BYTES = 64 * 1024;

/**
 * Distinguishes a dead peer (closed within 30 s) from a stalled reader (60 s without progress). A
 * stalled reader can't answer a ping, since the ping waits behind unread output. So silence means
 * death only if little output is in flight. Only output that the peer confirmed counts as progress.
 */
export class Liveness {
  readonly #clock: Clock;
  readonly #verdicts: LivenessVerdicts;
  #callOff: () => void = () => {};
  #pingDueAt: number;
  /** When the unanswered ping went out. */
  #pingedAt: number | undefined;
  #sent = 0;
  #sentAtPing = 0;
  #confirmed = 0;
  /** Start of the congestion, or its last progress. */
  #congestedAt: number | undefined;
  #deafSince: number | undefined;

  constructor(clock: Clock, verdicts: LivenessVerdicts) {
    this.#clock = clock;
    this.#verdicts = verdicts;
    this.#pingDueAt = clock.now() + PING_EVERY_MS;
  }

  start(): void {
    this.#arm();
  }

  stop(): void {
    this.#callOff();
  }

  /** Counts output given to the socket, in bytes. */
  sent(bytes: number): void {
    this.#sent += bytes;
  }

  /**
   * Any frame proves that the peer is alive. A pong also proves that it read all output before the
   * ping.
   */
  heard(what: 'frame' | 'pong'): void {
    if (what === 'pong' && this.#pingedAt !== undefined) this.#confirmed = this.#sentAtPing;
    this.#pingedAt = undefined;
  }

  /** Output starts to wait for the reader. */
  congested(): void {
    this.#congestedAt ??= this.#clock.now();
  }

  /** The reader took a part of the waiting output. */
  progressed(): void {
    if (this.#congestedAt !== undefined) this.#congestedAt = this.#clock.now();
  }

  flowing(): void {
    this.#congestedAt = undefined;
    if (this.#pingedAt !== undefined) this.#pingedAt = this.#clock.now();
  }

  /** The session stopped reading, so the peer's silence means nothing. */
  deaf(): void {
    this.#deafSince ??= this.#clock.now();
  }

  listening(): void {
    this.#deafSince = undefined;
    if (this.#pingedAt !== undefined) this.#pingedAt = this.#clock.now();
  }

  #arm(): void {
    this.#callOff = this.#clock.at(this.#nextCheck(), () => this.#check());
  }

  #nextCheck(): number {
    const now = this.#clock.now();
    const judged = this.#judgedAt();
    const ping = this.#mayPing() ? this.#pingDueAt : now + PING_EVERY_MS;
    return Math.max(now + 1, Math.min(ping, judged?.at ?? Infinity, now + PING_EVERY_MS));
  }

  #check(): void {
    const now = this.#clock.now();
    const judged = this.#judgedAt();
    if (judged && now >= judged.at) return judged.verdict();
    if (this.#mayPing() && now >= this.#pingDueAt) {
      this.#pingDueAt = now + PING_EVERY_MS;
      this.#pingedAt = now;
      this.#sentAtPing = this.#sent;
      this.#verdicts.ping();
    }
    this.#arm();
  }

  #mayPing(): boolean {
    return (
      this.#pingedAt === undefined &&
      this.#congestedAt === undefined &&
      this.#deafSince === undefined
    );
  }

  #judgedAt(): { readonly at: number; readonly verdict: () => void } | undefined {
    if (this.#congestedAt !== undefined)
      return { at: this.#congestedAt + STALL_MS, verdict: this.#verdicts.stalled };
    if (this.#pingedAt === undefined || this.#deafSince !== undefined) return undefined;
    return this.#sent - this.#confirmed > OWED_BYTES
      ? { at: this.#pingedAt + STALL_MS, verdict: this.#verdicts.stalled }
      : { at: this.#pingedAt + PONG_WITHIN_MS, verdict: this.#verdicts.dead };
  }
}
