import { setTimeout as pause } from 'node:timers/promises';
import { PortUnreachable, type PortTraits } from '../../contracts/sandbox-driver.ts';
import { ChannelStream, type Channels } from './channel-stream.ts';
import { cleaned } from '../sandboxes/cleaned-message.ts';
import { Deferred } from '../../lib/deferred.ts';

/**
 * Container runtimes say that a port refused, never that it took: it counts as taken when one has
 * said nothing for so long …
 */
const REFUSAL_WITHIN_MS = 50;
/** … or, where answers take long, for so many times an answer; 1 s at most. */
const REFUSAL_WITHIN_ANSWERS = 5;
const REFUSAL_WITHIN_MOST_MS = 1_000;
const ANSWER_WITHIN_MS = 15_000;

/** The carrier of one connection to a port. */
export interface PortCarrier extends Channels {
  /** Resolves with an answer to what is asked now, or the link's end. */
  roundTrip(): Promise<void>;
  /** The stream is destroyed. */
  left(): void;
  /** Nothing came in time that would say that the container runtime connects. */
  silent(): void;
}

export interface PortStreamTerms {
  readonly carrier: PortCarrier;
  readonly channel: number;
  readonly port: number;
  /** Ends it until `begun`. */
  readonly signal: AbortSignal;
  /** 15 s unless told. */
  readonly answerWithinMs?: number;
}

/**
 * A connection to a port of a Pod, as `SandboxDriver.dial` promises it: what is written goes on its
 * way at once. Half-closing isn't carried: the port sees no end of what is written before the whole
 * connection is over.
 */
export class PortStream extends ChannelStream implements Pick<PortTraits, 'taken'> {
  readonly #terms: PortStreamTerms;
  readonly #taken = new Deferred<void>();
  readonly #timer: NodeJS.Timeout;
  readonly #abort: () => void;
  #isBegun = false;
  /** Somebody wants to know whether the port takes it. */
  #isAsked = false;

  constructor(terms: PortStreamTerms) {
    super(terms.carrier, terms.channel, () => {
      terms.carrier.left();
    });
    this.#terms = terms;
    this.on('error', () => undefined); // where nobody has it yet
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

  /** The container runtime connects to the port. */
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

  /** Fails with PortUnreachable. */
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
    await carrier.roundTrip(); // what was said until now comes before this answer
    if (!this.destroyed) this.#taken.resolve();
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#terms.signal.removeEventListener('abort', this.#abort);
  }
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason));
