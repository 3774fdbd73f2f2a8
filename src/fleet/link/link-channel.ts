import { readFile, readlink } from 'node:fs/promises';
import type { Http2Session, Http2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { JoinedReads } from '../../lib/joined-reads.ts';
import { SocketStream } from '../../lib/streams/socket-stream.ts';
import { Agent, type RequestOptions } from 'node:http';
import type { ClusterRoute } from '../../contracts/fleet/cluster-links.ts';

/** The connection that carries a link, at either end. */
export interface LinkChannel {
  /** Carries HTTP/2. Link and stream end together. */
  readonly stream: Duplex;
  /** Bytes received so far. */
  readonly received: () => number;
  /**
   * True if the connection is gone. HTTP/2 may not notice: it does not read while it writes, and
   * over TLS Node does not report a failed write to HTTP/2.
   */
  readonly isGone: () => boolean;
  /** Bytes that this end has written so far. */
  readonly written: () => number;
  /**
   * Reads a number from the kernel that grows as bytes arrive, read or unread, and as the peer
   * acknowledges sent bytes. Resolves with undefined if the kernel gives no number. Concurrent
   * calls share one read.
   */
  readonly moved: () => Promise<number | undefined>;
}

/**
 * Name of a link's TLS connection, equal at both ends and unique (RFC 9266); empty without TLS.
 * Both ends sign it, so a man in the middle cannot relay a link over connections of its own.
 */
export const channelName = (connection: Duplex): string =>
  connection instanceof TLSSocket
    ? connection.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', NO_CONTEXT).toString('base64')
    : '';

const NO_CONTEXT = Buffer.alloc(0);

/** Makes the channel of a link from its connection. */
export const linkChannel = (socket: Socket): LinkChannel => {
  socket.once('end', () => socket.destroy()); // sockets of an HTTP server would stay half open
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
 * the middle of an HTTP/2 read. If one of them destroys the session there, it corrupts the
 * process's memory (Node 20.20).
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

/** Private fields of Node's socket handle; each is absent if Node drops it. */
interface Handle {
  readonly getpeername?: (address: object) => number;
  readonly fd?: number;
  readonly bytesRead?: number;
  /** Includes the bytes in `writeQueueSize`. */
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
  /** The TCP handle below TLS. */
  readonly _parent?: Handle;
}

const handleOf = (socket: Socket): Handle | undefined => {
  const { _handle: handle } = socket as unknown as { readonly _handle?: Handle | null };
  return handle?._parent ?? handle ?? undefined;
};

/** Asks the kernel, since Node caches `remoteAddress`. False if Node has no `getpeername`. */
const hasNoPeer = (socket: Socket): boolean => (handleOf(socket)?.getpeername?.({}) ?? 0) !== 0;

const reads = new JoinedReads();
const readConnections = async (): Promise<string> =>
  (
    await Promise.all(['tcp', 'tcp6'].map((each) => readFile(`/proc/self/net/${each}`, 'latin1')))
  ).join('');

/** Undefined, or rejects, if the kernel does not list the connection. */
const movedOf = async (socket: Socket): Promise<number | undefined> => {
  const name = await readlink(`/proc/self/fd/${handleOf(socket)?.fd ?? -1}`);
  const inode = /^socket:\[(\d+)\]$/.exec(name)?.[1];
  const connections = await reads.read('tcp', readConnections);
  const at = connections.indexOf(` ${inode} `);
  const line = connections.slice(connections.lastIndexOf('\n', at) + 1, at);
  // the line has addresses, state, then unacknowledged and unread bytes, all in hex
  const [, unacknowledged, unread] = / ([\dA-F]{8}):([\dA-F]{8}) /.exec(line) ?? [];
  const { bytesRead, bytesWritten, writeQueueSize } = handleOf(socket) ?? {};
  if (at < 0 || unacknowledged === undefined || unread === undefined) return undefined;
  if (bytesRead === undefined || bytesWritten === undefined || writeQueueSize === undefined)
    return undefined;
  const acknowledged = bytesWritten - writeQueueSize - Number.parseInt(unacknowledged, 16);
  return acknowledged + bytesRead + Number.parseInt(unread, 16);
};

/**
 * Makes an HTTP/2 stream a connection for HTTP/1.1, at either end. (Node's parser would read past
 * the framing of the bare stream.) Backpressure applies in both directions.
 */
export class TunnelSocket extends SocketStream {
  /** The peer is the other end of a link, not a client, so it has no address. */
  readonly remoteAddress: string | undefined = undefined;
  readonly #stream: Http2Stream;

  /** `client` if this end sends requests: the socket then ends when the other end does. */
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

  /** Sends chunks that HTTP/1.1 writes together, such as head and body, together. */
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
   * Ends the stream in order and drops the rest of its data. A peer takes many resets for an attack
   * and ends the whole link (CVE-2023-44487). Resets only if the other end does not end in time.
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
/** In each direction. */
const BUFFERED_BYTES = 64 * 1024;

/** Idle time of a pooled connection; shorter than the workers' idle timeout. */
const KEPT_MS = 30_000;

export interface LinkOptions extends RequestOptions {
  readonly route: ClusterRoute;
}

/** Pools connections over links, separately for each link. */
export class LinkAgent extends Agent {
  /**
   * `mostKept`: pooled connections per link. A new one costs the worker as much as a client's
   * connection.
   */
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
