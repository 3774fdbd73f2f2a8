import type { ChannelSocket } from './channel-socket.ts';
import { PortStream } from './port-stream.ts';
import {
  dataFrame,
  endStream,
  openStream,
  pingFrame,
  resetStream,
  SpdyReader,
  type SpdyEvent,
} from './spdy-frames.ts';

/** On one link; then it is closed, whatever the other side may have kept of them. */
const MOST_CONNECTIONS = 1_000;
const LONGEST_FAILURE = 1_024;

/** Two streams of SPDY: one tells failures alone. */
interface Tunnelled {
  readonly data: number;
  readonly failure: number;
  readonly stream: PortStream;
  /** The bytes that begin both; until they were sent. */
  opening: Buffer | undefined;
  /** The other side knows both. */
  isBegun: boolean;
  /** Whether the other side has ended what it sends on them. */
  isDataOver: boolean;
  isFailureOver: boolean;
  hasFailed: boolean;
}

export interface PortTunnelTerms {
  /** Called each time when the next connection may begin. */
  readonly freed: (tunnel: PortTunnel) => void;
  /** As in `PortCarrier`. */
  readonly silent: () => void;
  /** As in `PortStreamTerms`. */
  readonly answerWithinMs?: number;
}

/**
 * A link to one Pod that leads to ports of it, for one connection after the other: a reader that is
 * behind stops the whole link, and nobody else's connection. A link on which anything failed is
 * closed.
 */
export class PortTunnel {
  readonly #socket: ChannelSocket;
  readonly #terms: PortTunnelTerms;
  readonly #reader = new SpdyReader((event) => {
    this.#heard(event);
  });
  readonly #pings = new Map<number, () => void>();
  #current: Tunnelled | undefined;
  #nextStream = 1;
  #nextPing = 1;
  #hasBegun = false;
  #isOver = false;

  constructor(socket: ChannelSocket, terms: PortTunnelTerms) {
    this.#socket = socket;
    this.#terms = terms;
    socket.listenToFrames({
      frame: (bytes) => {
        this.#read(bytes);
      },
      closed: (why) => {
        this.#closed(why);
      },
    });
  }

  /** Resolves once it is over. */
  get closed(): Promise<void> {
    return this.#socket.closed;
  }

  /**
   * Only while no other connection has it. Sends at once, together with what is written at once.
   */
  connect(port: number, signal: AbortSignal): PortStream {
    if (this.#current) throw new Error('the link has a connection');
    const failure = this.#nextStream;
    const data = failure + 2;
    this.#nextStream += 4;
    const carrier = {
      send: (_stream: number, bytes: Buffer, sent?: () => void) => {
        this.#send(data, bytes, sent);
      },
      pause: () => {
        this.#socket.pause();
      },
      resume: () => {
        this.#socket.resume();
      },
      roundTrip: () => this.#roundTrip(),
      left: () => {
        this.#left(data);
      },
      silent: this.#terms.silent,
    };
    const headers = { port: String(port), requestid: String(failure) };
    const opening = Buffer.concat([
      openStream(failure, { ...headers, streamtype: 'error' }, { first: !this.#hasBegun }),
      endStream(failure),
      openStream(data, { ...headers, streamtype: 'data' }, { first: false }),
    ]);
    const stream = new PortStream({
      carrier,
      channel: data,
      port,
      signal,
      answerWithinMs: this.#terms.answerWithinMs,
    });
    this.#current = {
      data,
      failure,
      stream,
      opening,
      isBegun: false,
      isDataOver: false,
      isFailureOver: false,
      hasFailed: false,
    };
    setImmediate(() => {
      this.#open(data);
    });
    return stream;
  }

  close(): void {
    this.#isOver = true;
    this.#socket.close();
  }

  #open(data: number, more: Buffer = Buffer.alloc(0), sent?: () => void): void {
    const current = this.#current;
    if (current?.data !== data) return sent?.();
    const { opening } = current;
    current.opening = undefined;
    this.#hasBegun ||= opening !== undefined;
    if (opening || more.length > 0)
      this.#socket.sendFrame(opening ? Buffer.concat([opening, more]) : more, sent);
    else sent?.();
  }

  #send(data: number, bytes: Buffer, sent?: () => void): void {
    this.#open(data, dataFrame(data, bytes), sent);
  }

  #left(data: number): void {
    const current = this.#current;
    if (current?.data !== data) return;
    this.#current = undefined;
    if (this.#isOver) return;
    if (current.opening === undefined)
      this.#socket.sendFrame(current.isDataOver ? endStream(data) : resetStream(data));
    this.#socket.resume();
    const isSound = current.opening !== undefined || (current.isBegun && !current.hasFailed);
    if (isSound && this.#nextStream < 4 * MOST_CONNECTIONS) this.#terms.freed(this);
    else this.close();
  }

  #roundTrip(): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    const id = this.#nextPing;
    this.#nextPing += 2;
    return new Promise((resolve) => {
      this.#pings.set(id, resolve);
      this.#socket.sendFrame(pingFrame(id));
    });
  }

  #read(bytes: Buffer): void {
    try {
      this.#reader.push(bytes);
    } catch (error) {
      this.#socket.cut(error instanceof Error ? error.message : String(error));
    }
  }

  #heard(event: SpdyEvent): void {
    switch (event.type) {
      case 'data':
        return this.#heardData(event);
      case 'reply':
        return this.#heardReply(event.stream);
      case 'reset':
        return this.#heardReset(event.stream);
      case 'ping':
        return this.#heardPing(event.id);
      case 'go-away':
        this.#nextStream = 4 * MOST_CONNECTIONS;
    }
  }

  #heardData({ stream, bytes, last }: Extract<SpdyEvent, { readonly type: 'data' }>): void {
    const current = this.#current;
    if (current?.data === stream) {
      current.isBegun = true;
      current.stream.arrived(bytes);
      current.isDataOver ||= last;
    } else if (current?.failure === stream) {
      if (bytes.length > 0) return this.#fail(current, bytes.toString('utf8', 0, LONGEST_FAILURE));
      current.isFailureOver ||= last;
    }
    // Some runtimes end the data before they say why.
    if (current?.isDataOver && current.isFailureOver) current.stream.push(null);
  }

  #heardReply(stream: number): void {
    const current = this.#current;
    if (current?.data !== stream) return;
    current.isBegun = true;
    current.stream.begun();
  }

  #heardReset(stream: number): void {
    const current = this.#current;
    if (current?.data === stream || current?.failure === stream)
      this.#fail(current, 'the connection was reset');
  }

  #heardPing(id: number): void {
    if (id % 2 === 0) return this.#socket.sendFrame(pingFrame(id));
    this.#pings.get(id)?.();
    this.#pings.delete(id);
  }

  #fail(current: Tunnelled, why: string): void {
    current.hasFailed = true;
    current.stream.refuse(why);
  }

  #closed(why: string): void {
    this.#isOver = true;
    for (const resolve of this.#pings.values()) resolve();
    this.#pings.clear();
    this.#current?.stream.refuse(`the link was lost: ${why}`);
  }
}
