import type { ClientRequest, IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { ApiUnreachable, LinkLate, NotSent, refusedBy } from '../api/api-errors.ts';
import type { ClusterAccess } from '../api/cluster-access.ts';

/** The first for commands and terminals, the other for ports. */
export type Subprotocol = 'v5.channel.k8s.io' | 'v4.channel.k8s.io';

/** Written by `ws` after its `handshakeTimeout`. */
const HANDSHAKE_LATE = 'Opening handshake has timed out';

export interface ChannelSocketTerms {
  readonly access: ClusterAccess;
  readonly path: string;
  readonly subprotocol: Subprotocol;
  readonly agent: string;
  /** Pings, and checks for their answers; 10 s by default. */
  readonly pingEveryMs?: number;
  readonly openWithinMs?: number;
}

export interface ChannelEvents {
  /** Called once, after the last data. `clean`: the other end closed it on purpose. */
  closed(why: string, clean: boolean): void;
  /** May be called a few times after `pause()`. */
  data(channel: number, bytes: Buffer): void;
}

/** The API server and kubelets send at most 32 KiB. */
const MAX_PAYLOAD = 1 << 20;
const OPEN_WITHIN_MS = 10_000;
const PING_EVERY_MS = 10_000;
const MOST_UNANSWERED_LOOKS = 2;
const KEEP_ALIVE_MS = 30_000;
const CLOSE_GRACE_MS = 2_000;
/**
 * With more input than this since the last pong, a silent peer may be alive: it reads our pings
 * after the input.
 */
const OWED_BYTES = 4_096;
const LONGEST_REFUSAL = 64 << 10;
const CLOSE_CHANNEL = 255;
const NORMAL = 1_000;

/**
 * Pings detect a lost peer within three periods; while the reader pauses, or much input is pending,
 * only the kernel's timeouts do. A paused process (SIGSTOP, a VM's snapshot) runs its timers before
 * it reads received bytes, so a ping counts as unanswered only at the second check.
 */
export class ChannelSocket {
  readonly #ws: WebSocket;
  readonly #pings: NodeJS.Timeout;
  #events: ChannelEvents | undefined;
  #paused = false;
  #over = false;
  #why = '';
  #clean = false;
  #unansweredLooks = 0;
  #owed = 0;
  #pongs: (() => void)[] = [];
  #settle: () => void = () => {};
  readonly closed: Promise<void>;

  private constructor(ws: WebSocket, pingEveryMs: number) {
    this.#ws = ws;
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.pause();
    this.#pings = setInterval(() => {
      this.#look();
    }, pingEveryMs);
    ws.on('message', (data: Buffer) => {
      this.#heard(data);
    }); // binaryType is nodebuffer
    ws.on('pong', () => {
      this.#answered();
    });
    ws.on('error', (error) => {
      this.#why ||= error.message;
    });
    ws.on('close', (code, reason) => {
      this.#closed(this.#why || String(reason) || `closed with ${code}`, code === NORMAL);
    });
  }

  /**
   * Reads nothing before `listen`. Rejects with ApiRefused if the API server refuses, with NotSent
   * if it is unreachable, and with ApiUnreachable without an answer.
   */
  static open(terms: ChannelSocketTerms): Promise<ChannelSocket> {
    const { server, tls } = terms.access;
    const url = new URL(server.pathname.replace(/\/$/, '') + terms.path, server);
    url.protocol = server.protocol === 'http:' ? 'ws:' : 'wss:';
    const authorization = terms.access.authorization();
    const session = sessions.get(terms.access);
    const ws = new WebSocket(url, [terms.subprotocol], {
      ...tls,
      ...(session === undefined ? {} : { session }),
      maxPayload: MAX_PAYLOAD,
      handshakeTimeout: terms.openWithinMs ?? OPEN_WITHIN_MS,
      perMessageDeflate: false,
      ...(url.protocol === 'wss:' ? { generateMask: noMask } : {}),
      followRedirects: false,
      finishRequest: (request) => {
        keepSession(terms.access, request);
        request.end();
      },
      headers: {
        'user-agent': terms.agent,
        ...(authorization === undefined ? {} : { authorization }),
      },
    });
    const what = url.pathname;
    return new Promise((resolve, reject) => {
      const failed = (error: Error): void => {
        const Failure = isUnsent(error)
          ? NotSent
          : error.message === HANDSHAKE_LATE
            ? LinkLate
            : ApiUnreachable;
        reject(new Failure(`${what}: ${error.message}`, { cause: error }));
      };
      ws.on('error', failed);
      ws.once('upgrade', (response) => {
        response.socket.setKeepAlive(true, KEEP_ALIVE_MS);
      });
      ws.once('unexpected-response', (_request, response) => {
        if (response.statusCode === 401) terms.access.rejected();
        refusalIn(response).then((refusal) => {
          ws.terminate();
          reject(refusal);
        }, failed);
      });
      ws.once('open', () => {
        ws.off('error', failed);
        resolve(new ChannelSocket(ws, terms.pingEveryMs ?? PING_EVERY_MS));
      });
    });
  }

  listen(events: ChannelEvents): void {
    this.#events = events;
    if (this.#over)
      queueMicrotask(() => {
        events.closed(this.#why, this.#clean);
      });
    else this.resume();
  }

  /** Calls `sent` once the kernel has taken the bytes, or never will. */
  send(channel: number, bytes: Buffer, sent: () => void = () => {}): void {
    // Always defer the callback: otherwise a busy writer blocks all other events, such as the
    // link's end.
    if (this.#over) {
      setImmediate(sent);
      return;
    }
    this.#owed += bytes.length + 1;
    this.#ws.send(Buffer.concat([Buffer.of(channel), bytes]), (error) => {
      if (error) setImmediate(sent);
      else sent();
    });
  }

  /** Only in v5. */
  end(channel: number): void {
    if (!this.#over) this.#ws.send(Buffer.of(CLOSE_CHANNEL, channel), () => {});
  }

  roundTrip(): Promise<void> {
    if (this.#over) return Promise.resolve();
    return new Promise((resolve) => {
      this.#pongs.push(resolve);
      this.#ws.ping();
    });
  }

  pause(): void {
    if (this.#paused || this.#over) return;
    this.#paused = true;
    this.#ws.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#unansweredLooks = 0;
    this.#ws.resume();
  }

  /** May be repeated. */
  close(): void {
    this.#events = undefined;
    if (this.#over) return;
    this.resume(); // otherwise the peer's close frame stays unread
    this.#ws.close(NORMAL);
    setTimeout(() => {
      this.#ws.terminate();
    }, CLOSE_GRACE_MS).unref();
  }

  cut(why: string): void {
    this.#why ||= why;
    this.#ws.terminate();
  }

  #heard(frame: Buffer): void {
    this.#unansweredLooks = 0;
    const [channel] = frame;
    if (channel !== undefined) this.#events?.data(channel, frame.subarray(1));
  }

  #answered(): void {
    this.#unansweredLooks = 0;
    this.#owed = 0;
    for (const resolve of this.#pongs.splice(0)) resolve();
  }

  #look(): void {
    if (this.#paused || this.#ws.readyState !== WebSocket.OPEN) return;
    if (this.#unansweredLooks === 0) this.#ws.ping();
    else if (this.#owed > OWED_BYTES) return;
    else if (this.#unansweredLooks === MOST_UNANSWERED_LOOKS)
      return this.cut('the link is dead: a ping was not answered');
    this.#unansweredLooks += 1;
  }

  #closed(why: string, clean: boolean): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#pings);
    this.#settle();
    for (const resolve of this.#pongs.splice(0)) resolve();
    this.#why = why;
    this.#clean = clean;
    this.#events?.closed(why, clean);
  }
}

/**
 * Masks protect proxies from a browser's data (RFC 6455, 10.3), but no proxy reads inside TLS.
 * Masking is half of an upload's cost here.
 */
const noMask = (mask: Buffer): void => {
  mask.fill(0);
};

/**
 * A resumed TLS session skips certificates and saves 5 of some 60 ms of a command (RFC 8446, 2.2).
 */
const sessions = new WeakMap<ClusterAccess, Buffer>();

const keepSession = (access: ClusterAccess, request: ClientRequest): void => {
  request.once('socket', (socket) => {
    if (socket instanceof TLSSocket)
      socket.on('session', (session) => {
        sessions.set(access, session);
      });
  });
};

const UNSENT_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

const isUnsent = (error: Error): boolean =>
  'code' in error && typeof error.code === 'string' && UNSENT_CODES.has(error.code);

const refusalIn = async (response: IncomingMessage): Promise<Error> => {
  let body = '';
  for await (const chunk of response) {
    body += String(chunk);
    if (body.length > LONGEST_REFUSAL) break;
  }
  return refusedBy(response.statusCode ?? 500, body, response.headers['retry-after']);
};
