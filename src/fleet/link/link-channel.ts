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
  readonly stream: Duplex;
  readonly received: () => number;
  /**
   * HTTP/2 may not notice a lost connection: it does not read while it writes, and over TLS Node
   * does not report it a failed write.
   */
  readonly isGone: () => boolean;
  readonly written: () => number;
  /**
   * A number of the kernel that grows as bytes arrive or are acknowledged. Concurrent calls share
   * one read.
   */
  readonly moved: () => Promise<number | undefined>;
}

/**
 * Name of a link's TLS connection (RFC 9266); empty without TLS. Both ends sign it, so a man in the
 * middle cannot relay a link.
 */
export const channelName = (connection: Duplex): string =>
  connection instanceof TLSSocket
    ? connection.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', NO_CONTEXT).toString('base64')
    : '';

const NO_CONTEXT = Buffer.alloc(0);

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
 * Ends the session in a later turn of the loop. Hazard: Node may run promises within an HTTP/2
 * read; destroying the session there corrupts the process's memory (Node 20.20).
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

/** Private to Node; each may be absent. */
interface Handle {
  readonly getpeername?: (address: object) => number;
  readonly fd?: number;
  readonly bytesRead?: number;
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
  readonly _parent?: Handle;
}

const handleOf = (socket: Socket): Handle | undefined => {
  const { _handle: handle } = socket as unknown as { readonly _handle?: Handle | null };
  return handle?._parent ?? handle ?? undefined;
};

/** Asks the kernel, since Node caches `remoteAddress`. */
const hasNoPeer = (socket: Socket): boolean => (handleOf(socket)?.getpeername?.({}) ?? 0) !== 0;

const reads = new JoinedReads();
const readConnections = async (): Promise<string> =>
  (
    await Promise.all(['tcp', 'tcp6'].map((each) => readFile(`/proc/self/net/${each}`, 'latin1')))
  ).join('');

const movedOf = async (socket: Socket): Promise<number | undefined> => {
  const name = await readlink(`/proc/self/fd/${handleOf(socket)?.fd ?? -1}`);
  const inode = /^socket:\[(\d+)\]$/.exec(name)?.[1];
  const connections = await reads.read('tcp', readConnections);
  const at = connections.indexOf(` ${inode} `);
  const line = connections.slice(connections.lastIndexOf('\n', at) + 1, at);
  // addresses, state, then unacknowledged and unread bytes, in hex
  const [, unacknowledged, unread] = / ([\dA-F]{8}):([\dA-F]{8}) /.exec(line) ?? [];
  const { bytesRead, bytesWritten, writeQueueSize } = handleOf(socket) ?? {};
  if (at < 0 || unacknowledged === undefined || unread === undefined) return undefined;
  if (bytesRead === undefined || bytesWritten === undefined || writeQueueSize === undefined)
    return undefined;
  const acknowledged = bytesWritten - writeQueueSize - Number.parseInt(unacknowledged, 16);
  return acknowledged + bytesRead + Number.parseInt(unread, 16);
};

/**
 * Makes an HTTP/2 stream a connection for HTTP/1.1. Node's parser would read past the framing of
 * the bare stream.
 */
export class TunnelSocket extends SocketStream {
  readonly remoteAddress: string | undefined = undefined;
  readonly #stream: Http2Stream;

  /** A `client` socket ends when the other end does. */
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

  /** Sends head and body together. */
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
   * Ends the stream in order, since peers take many resets for an attack (CVE-2023-44487). Resets
   * only if the other end does not end in time.
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
const BUFFERED_BYTES = 64 * 1024;

/** Shorter than the workers' idle timeout. */
const KEPT_MS = 30_000;

export interface LinkOptions extends RequestOptions {
  readonly route: ClusterRoute;
}

export class LinkAgent extends Agent {
  /** A new connection costs the worker as much as a client's. */
  constructor(mostKept: number) {
    super({ keepAlive: true, maxFreeSockets: mostKept, timeout: KEPT_MS });
  }

  override getName(options?: LinkOptions): string {
    if (!options) throw new Error('a connection needs a link');
    return options.route.linkId;
  }

  override createConnection(options: LinkOptions): ReturnType<ClusterRoute['dial']> {
    return options.route.dial();
  }
}
