import type { ServerResponse } from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Context } from './context.ts';

/** WHATWG HTML, server-sent events. */
export interface ServerEvent {
  /** Defaults to `message`. */
  readonly event?: string;
  /** Sent back as Last-Event-ID. */
  readonly id?: string;
  readonly data: object | AsciiJson;
}

/** JSON in ASCII only. */
export class AsciiJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An answer body that EventStreams sends as events. */
export class EventStream {
  readonly events: (signal: AbortSignal) => AsyncIterable<ServerEvent>;
  /** Called once, however the stream ends. */
  readonly closed: () => void;

  /** 201 for a created resource. */
  readonly status: 200 | 201;

  constructor(events: EventStream['events'], closed: () => void, status: 200 | 201 = 200) {
    this.events = events;
    this.closed = closed;
    this.status = status;
  }
}

export interface EventStreamsOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** In ms; then a client that reads nothing is disconnected. */
  readonly stallMs: number;
}

interface Sending {
  readonly stream: EventStream;
  readonly controller: AbortController;
  readonly followKey: FollowKey;
}

/**
 * `ended` reports that the caller's key was revoked or expired. Returns a function that stops
 * watching.
 */
export type FollowKey = (ended: () => void) => () => void;

const HEARTBEAT_MS = 15_000;
/** Reconnect delay of clients, in ms. */
const RETRY_MS = 1_000;

/** Sends event streams no faster than clients read, with a comment every 15 s for proxies. */
export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #open = new Set<AbortController>();
  #isStopping = false;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Headers are sent when this returns. The stream ends with the caller's key. */
  open(context: Context, stream: EventStream, followKey: FollowKey): void {
    const { res: response } = context;
    const controller = new AbortController();
    this.#open.add(controller);
    if (response.destroyed || this.#isStopping) controller.abort();
    else response.once('close', () => controller.abort());
    context.status = stream.status;
    context.respond = false;
    response.shouldKeepAlive = false;
    response.writeHead(stream.status, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
      'X-Content-Type-Options': 'nosniff',
    });
    if (context.method === 'HEAD') controller.abort();
    else response.write(`retry: ${RETRY_MS}\n\n`);
    void this.#send(response, { stream, controller, followKey }).finally(() => {
      this.#open.delete(controller);
      stream.closed();
    });
  }

  /** Refuses new streams too. */
  stop(): void {
    this.#isStopping = true;
    for (const controller of this.#open) controller.abort();
  }

  /** Never rejects. */
  async #send(response: ServerResponse, { stream, controller, followKey }: Sending): Promise<void> {
    const { signal } = controller;
    const cancelHeartbeat = this.#heartbeat(() => {
      if (!response.writableNeedDrain) response.write(':\n\n');
    });
    const forgetKey = followKey(() => {
      controller.abort();
    });
    try {
      for await (const event of stream.events(signal)) {
        if (signal.aborted) break;
        if (!write(response, event) && !(await this.#drained(response, signal))) {
          this.#options.log.info({}, 'event-stream-cut');
          response.destroy();
        }
      }
    } catch (error) {
      if (!signal.aborted) this.#options.log.error({ error }, 'event-stream-failed');
    } finally {
      cancelHeartbeat();
      forgetKey();
      controller.abort();
      response.end();
    }
  }

  #heartbeat(beat: () => void): () => void {
    const { clock } = this.#options;
    let cancel = (): void => {};
    const next = (): void => {
      cancel = clock.at(clock.now() + HEARTBEAT_MS, () => {
        next();
        beat();
      });
    };
    next();
    return () => cancel();
  }

  /** False if the client reads nothing within `stallMs`. */
  #drained(response: ServerResponse, signal: AbortSignal): Promise<boolean> {
    const { clock, stallMs } = this.#options;
    return new Promise((resolve) => {
      const settle = (inTime: boolean) => (): void => {
        cancel();
        response.off('drain', drained);
        signal.removeEventListener('abort', drained);
        resolve(inTime);
      };
      const drained = settle(true);
      const cancel = clock.at(clock.now() + stallMs, settle(false));
      response.once('drain', drained);
      signal.addEventListener('abort', drained, { once: true });
    });
  }
}

/** False if the client is behind. */
const write = (response: ServerResponse, { event, id, data }: ServerEvent): boolean => {
  const head =
    (id === undefined ? '' : `id: ${id}\n`) + (event === undefined ? '' : `event: ${event}\n`);
  // JSON lacks line breaks, so one data line is enough.
  return data instanceof AsciiJson
    ? response.write(`${head}data: ${data.text}\n\n`, 'latin1')
    : response.write(`${head}data: ${JSON.stringify(data)}\n\n`);
};
