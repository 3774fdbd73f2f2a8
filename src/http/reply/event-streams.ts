import type { ServerResponse } from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Context } from './context.ts';

/** One Server-Sent Event (WHATWG HTML, server-sent events). */
export interface ServerEvent {
  /** Absent: `message`. */
  readonly event?: string;
  /** Says what a client that comes again gives as Last-Event-ID. */
  readonly id?: string;
  readonly data: object | AsciiJson;
}

/** Data that is JSON already, of characters of ASCII alone. */
export class AsciiJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The body of an answer that goes on: EventStreams sends it. */
export class EventStream {
  readonly events: (signal: AbortSignal) => AsyncIterable<ServerEvent>;
  /** Called once, however the stream ends. */
  readonly closed: () => void;

  /** 201 in the answer to what makes something. */
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
  /** A client that takes nothing for so long is cut. */
  readonly stallMs: number;
}

interface Sending {
  readonly stream: EventStream;
  readonly controller: AbortController;
  readonly followKey: FollowKey;
}

/** Calls back once the key of who asked is worth nothing any more. Answers the way to end it. */
export type FollowKey = (ended: () => void) => () => void;

const HEARTBEAT_MS = 15_000;
/** When a client that lost the stream comes again. */
const RETRY_MS = 1_000;

/**
 * Sends event streams, no faster than their clients read, with a comment every 15 s so that nobody
 * in between thinks them dead.
 */
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

  /**
   * Takes the response over; the stream is under way when this returns. It ends with its caller's
   * key.
   */
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

  /** Ends all streams, and each that is opened from now on; their clients may come again. */
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
      if (!signal.aborted) this.#options.log.error({ error }, 'event stream failed');
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

  /** False where the client took nothing in time. */
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

/** Returns false where the client is behind. */
const write = (response: ServerResponse, { event, id, data }: ServerEvent): boolean => {
  const head =
    (id === undefined ? '' : `id: ${id}\n`) + (event === undefined ? '' : `event: ${event}\n`);
  // JSON has no line ends, so one line of data is enough.
  return data instanceof AsciiJson
    ? response.write(`${head}data: ${data.text}\n\n`, 'latin1')
    : response.write(`${head}data: ${JSON.stringify(data)}\n\n`);
};
