import type { Clock } from '../../contracts/clock.ts';

export interface LivenessVerdicts {
  readonly ping: () => void;
  readonly dead: () => void;
  /** Alive perhaps, but has read no output for a minute. */
  readonly stalled: () => void;
}

const PING_EVERY_MS = 20_000;
const PONG_WITHIN_MS = 10_000;
const STALL_MS = 60_000;
/** Unconfirmed bytes beyond which a silent peer counts as stalled instead of dead. */
const OWED_BYTES = 64 * 1024;

/**
 * Distinguishes a dead peer (closed within 30 s) from a stalled reader (60 s). A ping waits behind
 * unread output, so silence means death only if little output is in flight. Only confirmed output
 * counts as progress.
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

  /** In bytes. */
  sent(bytes: number): void {
    this.#sent += bytes;
  }

  /** A pong also proves that the peer read all output before the ping. */
  heard(what: 'frame' | 'pong'): void {
    if (what === 'pong' && this.#pingedAt !== undefined) this.#confirmed = this.#sentAtPing;
    this.#pingedAt = undefined;
  }

  congested(): void {
    this.#congestedAt ??= this.#clock.now();
  }

  progressed(): void {
    if (this.#congestedAt !== undefined) this.#congestedAt = this.#clock.now();
  }

  flowing(): void {
    this.#congestedAt = undefined;
    if (this.#pingedAt !== undefined) this.#pingedAt = this.#clock.now();
  }

  /** The session stopped reading, so silence means nothing. */
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
