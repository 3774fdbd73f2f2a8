import { setTimeout as pause } from 'node:timers/promises';
import { PortUnreachable, type PortTraits } from '../../contracts/sandbox-driver.ts';
import { ChannelStream, type Channels } from './channel-stream.ts';
import { cleaned } from '../sandboxes/cleaned-message.ts';
import { Deferred } from '../../lib/deferred.ts';

/**
 * Container runtimes report only refused connections. A connection counts as accepted after this
 * silence.
 */
const REFUSAL_WITHIN_MS = 50;
/** Multiple of a round trip to wait instead on slow links, at most 1 s. */
const REFUSAL_WITHIN_ANSWERS = 5;
const REFUSAL_WITHIN_MOST_MS = 1_000;
const ANSWER_WITHIN_MS = 15_000;

export interface PortCarrier extends Channels {
  roundTrip(): Promise<void>;
  left(): void;
  silent(): void;
}

export interface PortStreamTerms {
  readonly carrier: PortCarrier;
  readonly channel: number;
  readonly port: number;
  readonly signal: AbortSignal;
  /** 15 s by default. */
  readonly answerWithinMs?: number;
}

/**
 * A connection to a port of a Pod, as `SandboxDriver.dial` promises. Sends data at once. Does not
 * support half-close: the port sees the end of input only when the whole connection ends.
 */
export class PortStream extends ChannelStream implements Pick<PortTraits, 'taken'> {
  readonly #terms: PortStreamTerms;
  readonly #taken = new Deferred<void>();
  readonly #timer: NodeJS.Timeout;
  readonly #abort: () => void;
  #isBegun = false;
  #isAsked = false;

  constructor(terms: PortStreamTerms) {
    super(terms.carrier, terms.channel, () => {
      terms.carrier.left();
    });
    this.#terms = terms;
    this.on('error', () => undefined); // before a caller has the stream
    this.#abort = () => {
      this.destroy(asError(terms.signal.reason));
    };
    this.#timer = setTimeout(() => {
      this.#unanswered();
    }, terms.answerWithinMs ?? ANSWER_WITHIN_MS);
    terms.signal.addEventListener('abort', this.#abort, { once: true });
    if (terms.signal.aborted) this.#abort();
  }

  get taken(): Promise<void> {
    this.#isAsked = true;
    if (this.#isBegun) void this.#awaitRefusal();
    return this.#taken.promise;
  }

  begun(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#disarm();
    if (this.#isAsked) void this.#awaitRefusal();
  }

  override arrived(bytes: Buffer): void {
    if (bytes.length > 0) {
      this.begun();
      this.#taken.resolve();
    }
    super.arrived(bytes);
  }

  refuse(why: string): void {
    this.destroy(new PortUnreachable(`port ${this.#terms.port}: ${cleaned(why)}`));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#disarm();
    this.#taken.reject(
      error ?? new PortUnreachable(`port ${this.#terms.port}: the connection was closed`),
    );
    super._destroy(error, done);
  }

  #unanswered(): void {
    this.#terms.carrier.silent();
    this.refuse('no answer');
  }

  async #awaitRefusal(): Promise<void> {
    const { carrier } = this.#terms;
    const askedAt = performance.now();
    await carrier.roundTrip();
    const answersMs = REFUSAL_WITHIN_ANSWERS * (performance.now() - askedAt);
    await pause(Math.min(Math.max(REFUSAL_WITHIN_MS, answersMs), REFUSAL_WITHIN_MOST_MS));
    if (this.destroyed) return;
    await carrier.roundTrip(); // an earlier refusal arrives before this answer
    if (!this.destroyed) this.#taken.resolve();
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#terms.signal.removeEventListener('abort', this.#abort);
  }
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason));
