import type { Log } from '../contracts/log.ts';
import { attributesOf, type OtlpSpan } from './otlp-span.ts';

export interface SpanSenderDeps {
  /** Of the collector, such as `http://127.0.0.1:4318`. */
  readonly endpoint: string;
  readonly log: Log;
  readonly version: string;
  readonly replica: string;
  /** How long spans wait for company, in ms. */
  readonly waitMs?: number;
}

const MOST_WAITING = 4_096;
const MOST_AT_ONCE = 512;
const WAIT_MS = 2_000;
const SEND_MS = 5_000;
const LAST_SEND_MS = 2_000;

/**
 * Posts spans in batches, one at a time. What the collector does not take is dropped, and so is
 * what comes while too much waits.
 */
export class SpanSender {
  readonly #deps: SpanSenderDeps;
  readonly #url: string;
  #waiting: OtlpSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #failing = false;

  constructor(deps: SpanSenderDeps) {
    this.#deps = deps;
    this.#url = `${deps.endpoint.replace(/\/$/, '')}/v1/traces`;
  }

  add(spans: readonly OtlpSpan[]): void {
    if (this.#waiting.length + spans.length > MOST_WAITING) return;
    this.#waiting.push(...spans);
    if (this.#waiting.length >= MOST_AT_ONCE) this.#send();
    else
      this.#timer ??= setTimeout(() => {
        this.#send();
      }, this.#deps.waitMs ?? WAIT_MS).unref();
  }

  async stop(): Promise<void> {
    const signal = AbortSignal.timeout(LAST_SEND_MS);
    const over = new Promise<void>((resolve) => {
      signal.addEventListener(
        'abort',
        () => {
          resolve();
        },
        { once: true },
      );
    });
    await Promise.race([this.#sending, over]);
    this.#clear();
    if (this.#waiting.length > 0 && !signal.aborted)
      await this.#post(this.#waiting.splice(0), signal);
  }

  #clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #send(): void {
    this.#clear();
    if (this.#sending || this.#waiting.length === 0) return;
    this.#sending = this.#post(
      this.#waiting.splice(0, MOST_AT_ONCE),
      AbortSignal.timeout(SEND_MS),
    ).finally(() => {
      this.#sending = undefined;
      if (this.#waiting.length >= MOST_AT_ONCE) this.#send();
      else if (this.#waiting.length > 0) this.add([]);
    });
  }

  /** Never rejects. */
  async #post(spans: readonly OtlpSpan[], signal: AbortSignal): Promise<void> {
    const { version, replica } = this.#deps;
    const resource = {
      attributes: attributesOf({
        'service.name': 'sandpool',
        'service.version': version,
        'service.instance.id': replica,
      }),
    };
    try {
      const answer = await fetch(this.#url, {
        method: 'POST',
        signal,
        redirect: 'error',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          resourceSpans: [
            { resource, scopeSpans: [{ scope: { name: 'sandpool', version }, spans }] },
          ],
        }),
      });
      await answer.body?.cancel();
      this.#note(answer.ok ? undefined : `it answered ${answer.status}`);
    } catch (error) {
      this.#note(error instanceof Error ? error.message : String(error));
    }
  }

  /** Says once that it fails, and once that it goes on. */
  #note(failure: string | undefined): void {
    if ((failure !== undefined) === this.#failing) return;
    this.#failing = failure !== undefined;
    if (failure === undefined)
      this.#deps.log.info({ collector: this.#url }, 'traces are taken again');
    else
      this.#deps.log.warn(
        { collector: this.#url, failure },
        'traces are not taken; they are dropped',
      );
  }
}
