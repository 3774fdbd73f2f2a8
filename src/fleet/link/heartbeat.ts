import type { Http2Session } from 'node:http2';
import type { Clock } from '../../contracts/clock.ts';
import type { LinkChannel } from './link-channel.ts';

const HEARTBEAT_MS = 5_000;
const LOOK_MS = 1_000;
/** More checks without bytes end a link: after 15 s to 16 s. */
const MOST_QUIET_LOOKS = 15;
const PROBE_MS = 1_500;
/** Applies if a PING queues behind `BUSY_BYTES` or more. */
const BUSY_PROBE_MS = 5_000;
const PROBE_STEP_MS = 250;
const BUSY_BYTES = 64 * 1024;

export interface HeartbeatTerms {
  readonly clock: Clock;
  /** Any received bytes show that the other end is alive. */
  readonly channel: Pick<LinkChannel, 'received' | 'isGone' | 'written' | 'moved'>;
  readonly answered?: (tookMs: number) => void;
  readonly heard: () => void;
  /** Called once. */
  readonly dead: (why: string) => void;
}

/**
 * Sends an HTTP/2 PING every 5 s, and declares a link dead after 15 s without bytes or a
 * connection. After `probe`, a link without bytes for 1.5 s is silent, not cut: it may only be
 * slow.
 *
 * Node's HTTP/2 does not read while it writes, so answers are late behind much data. After 64 KiB
 * without an answered PING, a probe lasts 5 s, and traffic that only the kernel sees counts.
 *
 * A paused process (SIGSTOP, a VM's snapshot) runs its timers before it reads received bytes. So
 * the heartbeat counts checks, not time, and a paused probe starts again.
 */
export class Heartbeat {
  readonly #session: Http2Session;
  readonly #terms: HeartbeatTerms;
  readonly #waiting = new Set<() => void>();
  #quietLooks = 0;
  #received = 0;
  #moved: number | undefined;
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

  #look(): boolean {
    const received = this.#terms.channel.received();
    if (received === this.#received) return false;
    this.#received = received;
    this.#moved = undefined;
    this.#hear();
    return true;
  }

  /** Looks for traffic that only the kernel has seen. */
  async #lookClosely(): Promise<void> {
    const moved = await this.#terms.channel.moved();
    if (moved === undefined || this.#stopped) return;
    const before = this.#moved;
    // not read atomically, so a number may be too high; take a lower one too
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

  /** Returns a function that cancels. */
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
      if (this.#quietLooks > MOST_QUIET_LOOKS) return dead('no message arrived for 15 s');
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
