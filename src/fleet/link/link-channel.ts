import { readFile, readlink } from 'node:fs/promises';
import type { Http2Session, Http2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { JoinedReads } from '../../lib/joined-reads.ts';
import { SocketStream } from '../../lib/streams/socket-stream.ts';
import { Agent, type RequestOptions } from 'node:http';
import type { ClusterRoute } from '../../contracts/fleet/cluster-links.ts';

/** The connection that a link goes over, at either end. */
export interface LinkChannel {
  /** Carries HTTP/2. The link ends with it, and it with the link. */
  readonly stream: Duplex;
  /** Bytes that came so far. */
  readonly received: () => number;
  /**
   * Says that the connection is no more, whatever HTTP/2 makes of that: while it writes it reads
   * nothing, and over TLS no version of Node tells it of a write that failed.
   */
  readonly isGone: () => boolean;
  /** Bytes that this end has given to be sent so far. */
  readonly written: () => number;
  /**
   * Asks the kernel for a number that grows as bytes come, read or not, and as those of this end
   * are acknowledged; undefined where it does not say. Many who ask together cost one read.
   */
  readonly moved: () => Promise<number | undefined>;
}

/**
 * Names the TLS connection that a link goes over, alike at both of its ends and like no other one
 * (RFC 9266); empty where this end has no TLS. What both sign holds it, so that nobody in the
 * middle can pass it on over connections of theirs.
 */
export const channelName = (connection: Duplex): string =>
  connection instanceof TLSSocket
    ? connection.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', NO_CONTEXT).toString('base64')
    : '';

const NO_CONTEXT = Buffer.alloc(0);

/** Has HTTP/2 run on a connection. */
export const linkChannel = (socket: Socket): LinkChannel => {
  socket.once('end', () => socket.destroy()); // one of an HTTP server stays half open
  return {
    stream: socket,
    received: () => socket.bytesRead,
    isGone: () => hasNoPeer(socket),
    written: () => handleOf(socket)?.bytesWritten ?? 0,
    moved: () => movedOf(socket).catch(() => undefined),
  };
};

/**
 * Ends the session and its connection in a later turn of the loop. Hazard: Node runs promises in
 * the middle of a read of HTTP/2, and a session that one of them destroys there corrupts the memory
 * of the process (Node 20.20).
 */
export const endSession = (
  session: Http2Session,
  { stream }: Pick<LinkChannel, 'stream'>,
): void => {
  setImmediate(() => {
    session.destroy();
    stream.destroy();
  });
};

/** Has nothing where Node has no such way any more. */
interface Handle {
  readonly getpeername?: (address: object) => number;
  readonly fd?: number;
  readonly bytesRead?: number;
  /** With what waits in `writeQueueSize`. */
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
  /** TCP, below TLS. */
  readonly _parent?: Handle;
}

const handleOf = (socket: Socket): Handle | undefined => {
  const { _handle: handle } = socket as unknown as { readonly _handle?: Handle | null };
  return handle?._parent ?? handle ?? undefined;
};

/** Asks the kernel. (`remoteAddress` would say what it was.) False where Node has no such way. */
const hasNoPeer = (socket: Socket): boolean => (handleOf(socket)?.getpeername?.({}) ?? 0) !== 0;

const reads = new JoinedReads();
const readConnections = async (): Promise<string> =>
  (
    await Promise.all(['tcp', 'tcp6'].map((each) => readFile(`/proc/self/net/${each}`, 'latin1')))
  ).join('');

/** Undefined, or a rejection, where the kernel does not list the connection. */
const movedOf = async (socket: Socket): Promise<number | undefined> => {
  const name = await readlink(`/proc/self/fd/${handleOf(socket)?.fd ?? -1}`);
  const inode = /^socket:\[(\d+)\]$/.exec(name)?.[1];
  const connections = await reads.read('tcp', readConnections);
  const at = connections.indexOf(` ${inode} `);
  const line = connections.slice(connections.lastIndexOf('\n', at) + 1, at);
  // addresses, state, then what is not acknowledged and what is not read, all in hex
  const [, unacknowledged, unread] = / ([\dA-F]{8}):([\dA-F]{8}) /.exec(line) ?? [];
  const { bytesRead, bytesWritten, writeQueueSize } = handleOf(socket) ?? {};
  if (at < 0 || unacknowledged === undefined || unread === undefined) return undefined;
  if (bytesRead === undefined || bytesWritten === undefined || writeQueueSize === undefined)
    return undefined;
  const acknowledged = bytesWritten - writeQueueSize - Number.parseInt(unacknowledged, 16);
  return acknowledged + bytesRead + Number.parseInt(unread, 16);
};

/**
 * Makes a stream of HTTP/2 a connection that HTTP/1.1 can be spoken on, at either end. (Handed over
 * as it is, Node's parser reads past the stream's framing.) No more is read than is taken, and no
 * more is taken than the other side reads.
 */
export class TunnelSocket extends SocketStream {
  /** Its peer is the other end of a link, and no address of a client. */
  readonly remoteAddress: string | undefined = undefined;
  readonly #stream: Http2Stream;

  /** `client` where requests are sent from here: it ends once the other end has. */
  constructor(stream: Http2Stream, end: 'client' | 'server') {
    super({ allowHalfOpen: end === 'server', highWaterMark: BUFFERED_BYTES });
    this.#stream = stream;
    stream.on('data', (bytes: Buffer) => {
      this.moved();
      if (!this.push(bytes)) stream.pause();
    });
    stream.once('end', () => this.push(null));
    stream.on('error', (error) => this.destroy(error));
    stream.once('close', () => {
      if (!stream.readableEnded) this.destroy();
      else if (!this.writableFinished) this.destroy();
    });
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void) {
    this.moved();
    this.#stream.write(bytes, done);
  }

  /** Sends at once what HTTP/1.1 writes at once, such as head and body. */
  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this.moved();
    const stream = this.#stream;
    stream.cork();
    for (const [at, { chunk }] of chunks.entries())
      stream.write(chunk, at === chunks.length - 1 ? done : undefined);
    stream.uncork();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#stream.end(() => done());
  }

  /**
   * Ends the stream in order, and drops what still comes of it: a peer that sees many streams reset
   * takes it for an attack and ends the whole link (CVE-2023-44487). Reset where the other side
   * does not end in time.
   */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const stream = this.#stream;
    done(error);
    if (stream.closed || stream.destroyed) return;
    stream.removeAllListeners('data');
    stream.resume();
    if (!stream.writableEnded) stream.end();
    const late = setTimeout(() => stream.close(), LINGER_MS).unref();
    stream.once('close', () => clearTimeout(late));
  }
}

const LINGER_MS = 5_000;
/** Each way. */
const BUFFERED_BYTES = 64 * 1024;

/** A connection that nobody uses is kept for so long: shorter than workers keep theirs. */
const KEPT_MS = 30_000;

export interface LinkOptions extends RequestOptions {
  readonly route: ClusterRoute;
}

/** Keeps connections over links, each for requests over its own link. */
export class LinkAgent extends Agent {
  /** `mostKept` of each link: to begin one costs the worker as much as a connection of a client. */
  constructor(mostKept: number) {
    super({ keepAlive: true, maxFreeSockets: mostKept, timeout: KEPT_MS });
  }

  override getName(options?: LinkOptions): string {
    if (!options) throw new Error('a connection is over a link');
    return options.route.linkId;
  }

  override createConnection(options: LinkOptions): ReturnType<ClusterRoute['dial']> {
    return options.route.dial();
  }
}
