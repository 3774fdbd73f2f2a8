import type { Http2Session } from 'node:http2';
import type { Clock } from '../../contracts/clock.ts';
import type { LinkChannel } from './link-channel.ts';

const HEARTBEAT_MS = 5_000;
/** Interval between two looks whether anything came, and whether the connection is there. */
const LOOK_MS = 1_000;
/** A link is dead once more looks in a row than this have found nothing: after 15 s to 16 s. */
const MOST_QUIET_LOOKS = 15;
/** For anything to be heard, after a look out of turn. */
const PROBE_MS = 1_500;
/** In place of that, where a PING waits behind so many bytes. */
const BUSY_PROBE_MS = 5_000;
const PROBE_STEP_MS = 250;
const BUSY_BYTES = 64 * 1024;

export interface HeartbeatTerms {
  readonly clock: Clock;
  /** Bytes of the other end show that it lives, whether they answer a PING or not. */
  readonly channel: Pick<LinkChannel, 'received' | 'isGone' | 'written' | 'moved'>;
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
 *
 * What is said to much that is sent over a slow way comes late, and Node's HTTP/2 reads nothing
 * while it writes. So where 64 KiB and more were given to be sent since a PING that was answered, a
 * link is silent after 5 s, and whatever the kernel sees of the other end counts as heard.
 *
 * An operator can pause this process: by SIGSTOP, or by a snapshot or live migration of its VM. It
 * then reads and sends nothing, and its timers fire before it reads what came. So the heartbeat
 * counts looks, of which a pause is one, and a probe that was paused starts again.
 */
export class Heartbeat {
  readonly #session: Http2Session;
  readonly #terms: HeartbeatTerms;
  readonly #waiting = new Set<() => void>();
  /** Looks in a row that found nothing. */
  #quietLooks = 0;
  #received = 0;
  /** Holds what the kernel told last since something was read. */
  #moved: number | undefined;
  /** Bytes that went before the last PING that was answered. */
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

  /** How long the last one took there and back. */
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

  /** Notes, and says, whether anything came since the last look. */
  #look(): boolean {
    const received = this.#terms.channel.received();
    if (received === this.#received) return false;
    this.#received = received;
    this.#moved = undefined;
    this.#hear();
    return true;
  }

  /** Notes whether the kernel has seen anything of the other end since the last time. */
  async #lookClosely(): Promise<void> {
    const moved = await this.#terms.channel.moved();
    if (moved === undefined || this.#stopped) return;
    const before = this.#moved;
    // Its parts are read one after the other: one that was too much is not waited for.
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

  /** Calls `silent` where nothing is heard in time; returns the way to call that off. */
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
