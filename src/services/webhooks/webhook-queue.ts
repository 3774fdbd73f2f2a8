import { hash } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type { DeadLetters, KeptDeadLetter } from '../../contracts/coordination/dead-letters.ts';
import type { OpenedRequest, Requests } from '../../contracts/coordination/requests.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { DeadLetter, WebhookReport } from '../../model/approvals/webhook-report.ts';
import { unkeyedFingerprint, type RequestFingerprint } from '../../model/request-fingerprint.ts';
import { headersOf, type WebhookMessage, type WebhookTerms } from './webhook-message.ts';
import type { WebhookPost } from './post.ts';

/** The receiver verifies the daemon with the secret. */
export interface WebhookReceiver {
  readonly url: string;
  readonly secret: string;
}

export interface WebhookQueueDeps {
  readonly marks: Pick<Requests, 'openRequest' | 'keepAnswer' | 'giveUpRequest'>;
  readonly deadLetters: DeadLetters;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly post: (what: WebhookPost) => Promise<number>;
  readonly terms: WebhookTerms;
  /** In ms, after which a message is no longer retried. */
  readonly giveUpMs: number;
}

interface Delivery {
  readonly message: WebhookMessage;
  readonly until: number;
  readonly attempts: number;
}

export const MOST_WAITING = 1_000;
export const MOST_DEAD_LETTERS = 50;
const MOST_AT_ONCE = 4;
/** In ms. */
export const ANSWER_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Clock difference between replicas, in ms. */
const SKEW_MS = 60_000;

/** Reserved for the daemon's own requests; no tenant can have it. */
const NO_TENANT = { namespace: '-', team: '-', user: '-' };

/**
 * Retries each message until it is accepted or too old, and then makes it a dead letter. A message
 * that any replica has sent is not sent again, unless a replica dies just as the receiver accepts
 * it.
 */
export class WebhookQueue {
  readonly #deps: WebhookQueueDeps;
  readonly #receiver: WebhookReceiver;
  readonly #waiting: Delivery[] = [];
  readonly #sending = new Set<AbortController>();
  readonly #pauses = new Set<() => void>();
  /** Newest first. */
  readonly #dead: DeadLetter[] = [];
  readonly #revived = new Set<string>();
  #over = false;

  constructor(deps: WebhookQueueDeps, receiver: WebhookReceiver) {
    this.#deps = deps;
    this.#receiver = receiver;
  }

  /** Never throws. */
  put(message: WebhookMessage, until: number): void {
    if (this.#over) return;
    const delivery = { message, until, attempts: 0 };
    if (this.size >= MOST_WAITING) return this.#bury(delivery, 'too many messages are waiting');
    this.#waiting.push(delivery);
    this.#pump();
  }

  deadLetters(): Promise<readonly KeptDeadLetter[]> {
    return this.#deps.deadLetters.of(this.#name);
  }

  /** Keeps the letter until the receiver accepts it. */
  revive(letter: KeptDeadLetter): void {
    if (this.#revived.has(letter.id)) return;
    this.#revived.add(letter.id);
    this.put(letter, this.#deps.clock.now() + this.#deps.giveUpMs);
  }

  stop(): void {
    this.#over = true;
    this.#waiting.length = 0;
    for (const cancel of this.#pauses) cancel();
    this.#pauses.clear();
    for (const sending of this.#sending) sending.abort();
  }

  get size(): number {
    return this.#waiting.length + this.#sending.size + this.#pauses.size;
  }

  report(): WebhookReport {
    return { address: this.address, waiting: this.size, deadLetters: [...this.#dead] };
  }

  get address(): string {
    return new URL(this.#receiver.url).origin;
  }

  /** The receiver's address may contain a secret. */
  get #name(): string {
    return hash('sha256', `webhook ${this.#receiver.url}`, 'base64url').slice(0, 22);
  }

  #pump(): void {
    while (this.#sending.size < MOST_AT_ONCE) {
      const delivery = this.#waiting.shift();
      if (!delivery) return;
      void this.#deliver(delivery);
    }
  }

  async #deliver(delivery: Delivery): Promise<void> {
    const sending = new AbortController();
    this.#sending.add(sending);
    let problem: string | undefined;
    try {
      problem = await this.#attempt(delivery, sending);
    } catch (error) {
      this.#deps.log.error({ error }, 'webhook-threw');
      problem = 'it could not be sent';
    }
    this.#sending.delete(sending);
    if (problem === undefined) await this.#forget(delivery.message);
    else if (!this.#over) this.#again(delivery, problem);
    this.#pump();
  }

  async #attempt({ message }: Delivery, sending: AbortController): Promise<string | undefined> {
    const mark = this.#markOf(message);
    const kind = await this.#open(mark);
    if (kind === 'answered') return undefined;
    if (kind === 'in-flight') return 'another replica is sending it';
    const problem = await this.#send(message, sending);
    if (problem === undefined) this.#deps.metrics.count(SENT, { outcome: 'delivered' });
    await this.#close(mark, problem === undefined);
    return problem;
  }

  async #send(message: WebhookMessage, sending: AbortController): Promise<string | undefined> {
    const { clock, post, terms } = this.#deps;
    const { url, secret } = this.#receiver;
    const at = clock.now();
    let isLate = false;
    const cancel = clock.at(at + ANSWER_MS, () => {
      isLate = true;
      sending.abort();
    });
    try {
      const status = await post({
        url,
        headers: headersOf(message, { secret, at, userAgent: terms.userAgent }),
        body: message.body,
        signal: sending.signal,
      });
      return status >= 200 && status < 300 ? undefined : problemOf(status);
    } catch (error) {
      return isLate ? `no answer within ${ANSWER_MS / 1_000} s` : `not reached: ${codeOf(error)}`;
    } finally {
      cancel();
    }
  }

  #again({ message, until, attempts }: Delivery, problem: string): void {
    const { clock, metrics } = this.#deps;
    const tried = { message, until, attempts: attempts + 1 };
    const moment = clock.now() + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempts);
    if (moment > until) return this.#bury(tried, problem);
    metrics.count(SENT, { outcome: 'retried' });
    const cancel = clock.at(moment, () => {
      this.#pauses.delete(cancel);
      this.#waiting.push(tried);
      this.#pump();
    });
    this.#pauses.add(cancel);
  }

  #bury({ message, attempts }: Delivery, problem: string): void {
    const { id, event, approvalId, body } = message;
    const { clock, log, metrics } = this.#deps;
    const letter = { id, event, approvalId, at: clock.now(), attempts, problem };
    this.#dead.unshift(letter);
    this.#dead.length = Math.min(this.#dead.length, MOST_DEAD_LETTERS);
    metrics.count(SENT, { outcome: 'given-up' });
    log.warn({ id, address: this.address, attempts, problem }, 'webhook-not-delivered');
    this.#revived.delete(id);
    void this.#keep({ ...letter, body });
  }

  async #keep(letter: KeptDeadLetter): Promise<void> {
    try {
      await this.#deps.deadLetters.keep(this.#name, letter);
    } catch (error) {
      this.#deps.log.warn({ error, id: letter.id }, 'dead-letter-not-stored');
    }
  }

  async #forget({ id }: WebhookMessage): Promise<void> {
    if (!this.#revived.delete(id)) return;
    try {
      await this.#deps.deadLetters.forget(this.#name, id);
    } catch (error) {
      this.#deps.log.warn({ error, id }, 'dead-letter-not-deleted');
    }
  }

  /** Sends the message if the marks are unreachable: twice is better than never. */
  async #open(mark: RequestFingerprint): Promise<OpenedRequest['kind']> {
    try {
      return (await this.#deps.marks.openRequest(mark, this.#owner())).kind;
    } catch {
      return 'new';
    }
  }

  async #close(mark: RequestFingerprint, isTaken: boolean): Promise<void> {
    const { marks, log } = this.#deps;
    try {
      if (isTaken) await marks.keepAnswer(mark, this.#owner(), 'taken');
      else await marks.giveUpRequest(mark, this.#owner());
    } catch (error) {
      log.warn({ error }, 'webhook-outcome-not-recorded');
    }
  }

  #owner() {
    return { tenant: NO_TENANT, ttlMs: this.#deps.giveUpMs + SKEW_MS };
  }

  #markOf({ id }: WebhookMessage): RequestFingerprint {
    const text = `webhook ${this.#receiver.url} ${id}`;
    return unkeyedFingerprint(hash('sha256', text, 'base64url').slice(0, 22));
  }
}

const SENT = 'sandpool_webhook_messages_total';

const problemOf = (status: number): string =>
  status >= 300 && status < 400
    ? `status ${status}; redirects are not followed`
    : `status ${status}`;

/** Never the message, which may quote the address. */
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'no connection';
