import type { Http2Session } from 'node:http2';
import type { Clock } from '../../contracts/clock.ts';
import type { LinkChannel } from './link-channel.ts';

const HEARTBEAT_MS = 5_000;
/** Interval between two checks for received bytes and for the connection. */
const LOOK_MS = 1_000;
/** A link is dead after more consecutive checks without bytes: after 15 s to 16 s. */
const MOST_QUIET_LOOKS = 15;
/** Deadline for any bytes after a probe. */
const PROBE_MS = 1_500;
/** Deadline if a PING queues behind `BUSY_BYTES` or more. */
const BUSY_PROBE_MS = 5_000;
const PROBE_STEP_MS = 250;
const BUSY_BYTES = 64 * 1024;

export interface HeartbeatTerms {
  readonly clock: Clock;
  /** Any bytes from the other end show that it is alive, not only answers to a PING. */
  readonly channel: Pick<LinkChannel, 'received' | 'isGone' | 'written' | 'moved'>;
  /** A PING was answered; time in ms. */
  readonly answered?: (tookMs: number) => void;
  /** Called when bytes arrive. */
  readonly heard: () => void;
  /** Called once, if the link is dead. */
  readonly dead: (why: string) => void;
}

/**
 * Sends an HTTP/2 PING every 5 s. Declares a link dead if nothing arrives for 15 s, or if its
 * connection is gone. `probe` checks at once: a link without bytes for 1.5 s is silent until bytes
 * arrive. A silent link is not cut, since it may only be slow.
 *
 * Answers are late behind much data on a slow path, and Node's HTTP/2 does not read while it
 * writes. So if this end has written 64 KiB or more since the last answered PING, the deadline of a
 * probe is 5 s. Traffic that only the kernel sees then counts as well.
 *
 * An operator can pause this process: by SIGSTOP, or by a snapshot or live migration of its VM. It
 * then reads and sends nothing, and its timers fire before it reads the received bytes. So the
 * heartbeat counts checks, of which a pause is one, and a paused probe starts again.
 */
export class Heartbeat {
  readonly #session: Http2Session;
  readonly #terms: HeartbeatTerms;
  readonly #waiting = new Set<() => void>();
  /** Consecutive checks without received bytes. */
  #quietLooks = 0;
  #received = 0;
  /** The kernel's last number since bytes were read. */
  #moved: number | undefined;
  /** Bytes written before the last answered PING. */
  #arrived = 0;
  #latencyMs = 0;
  #isSilent = false;
  #callOff: () => void = () => {};
  #callOffLook: () => void = () => {};
  #callOffProbe: (() => void) | undefined;
  #stopped = false;

  constructor(session: Http2Session, terms: HeartbeatTerms) {
    this.#session = session;
    this.#terms = terms;
  }

  /** Round trip in ms of the last answered PING. */
  get latencyMs(): number {
    return this.#latencyMs;
  }

  start(): void {
    this.#terms.heard();
    this.#pingAndAgain();
    this.#lookAndAgain();
  }

  stop(): void {
    this.#stopped = true;
    this.#callOff();
    this.#callOffLook();
    this.#callOffProbe?.();
    this.#waiting.clear();
  }

  get isSilent(): boolean {
    if (this.#isSilent) this.#look();
    return this.#isSilent;
  }

  /** Returns whether bytes have arrived since the last check. */
  #look(): boolean {
    const received = this.#terms.channel.received();
    if (received === this.#received) return false;
    this.#received = received;
    this.#moved = undefined;
    this.#hear();
    return true;
  }

  /** Checks whether the kernel has seen traffic of the other end since the last check. */
  async #lookClosely(): Promise<void> {
    const moved = await this.#terms.channel.moved();
    if (moved === undefined || this.#stopped) return;
    const before = this.#moved;
    // The kernel's counters are not read atomically, so a number may be too high. Replace it even
    // if the new number is lower.
    this.#moved = moved;
    if (before !== undefined && moved > before) this.#hear();
  }

  #hear(): void {
    this.#quietLooks = 0;
    this.#isSilent = false;
    this.#callOffProbe?.();
    this.#callOffProbe = undefined;
    this.#waiting.clear();
    this.#terms.heard();
  }

  get #isBusy(): boolean {
    return this.#terms.channel.written() - this.#arrived >= BUSY_BYTES;
  }

  /** Calls `silent` if nothing arrives in time. Returns a function that cancels the call. */
  probe(silent: () => void): () => void {
    this.#look();
    this.#waiting.add(silent);
    if (!this.#callOffProbe) {
      this.#awaitAnyWord(0);
      this.#ping();
    }
    return () => this.#waiting.delete(silent);
  }

  #awaitAnyWord(waitedMs: number): void {
    const { clock } = this.#terms;
    const due = clock.now() + PROBE_STEP_MS;
    this.#callOffProbe = clock.at(due, () => {
      const wasPaused = clock.now() - due >= PROBE_STEP_MS;
      const waited = wasPaused ? 0 : waitedMs + PROBE_STEP_MS;
      if (waited >= (this.#isBusy ? BUSY_PROBE_MS : PROBE_MS)) this.#foundSilent();
      else this.#awaitAnyWord(waited);
    });
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
    const { clock, channel, dead } = this.#terms;
    this.#callOffLook = clock.at(clock.now() + LOOK_MS, () => {
      if (!this.#look()) {
        this.#quietLooks += 1;
        if (this.#isBusy) void this.#lookClosely();
      }
      if (channel.isGone()) return dead('the connection ended');
      if (this.#quietLooks > MOST_QUIET_LOOKS) return dead('nothing was heard of it for 15 s');
      this.#lookAndAgain();
    });
  }

  #ping(): void {
    if (this.#session.destroyed || this.#session.closed) return;
    const before = this.#terms.channel.written();
    this.#session.ping((error, tookMs) => {
      if (error) return;
      this.#arrived = before;
      this.#latencyMs = tookMs;
      this.#look();
      this.#terms.answered?.(tookMs);
    });
  }
}
