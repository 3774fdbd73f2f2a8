import { once } from 'node:events';
import { request as httpRequest, Agent } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { rememberRequest } from '../../../local-cluster/last-answers.ts';
import { checkDocumented } from './documented-answers.ts';
import { NEVER_COMES_MS } from './eventually.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The body parsed; an empty object where it is no JSON. */
  readonly json: WireBody;
}

/**
 * The fields of all bodies, by the names of docs/reference/api, so that tests may read them; which are
 * there is for the test to say.
 */
export interface WireBody {
  readonly error?: string;
  readonly errorCode?: string;
  readonly ready?: boolean;
  readonly detail?: Readonly<Record<string, unknown>> | null;
  readonly sandbox?: Readonly<Record<string, string>>;
  readonly template?: Readonly<Record<string, unknown>>;
  readonly items?: readonly Readonly<Record<string, unknown>>[];
  readonly total?: number;
  readonly token?: string;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly truncated?: boolean;
  readonly apiKey?: string;
  readonly keyId?: string;
  readonly name?: string;
  readonly role?: string;
  readonly expiresAt?: string;
  readonly status?: string;
  readonly problems?: readonly string[];
}

export interface HttpAsk {
  readonly key?: string;
  /** Sent as JSON; `raw` is sent as it is. */
  readonly body?: unknown;
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** How a client is made that is for another port than that of the REST API. */
export interface HttpClientTerms {
  /** By which header the key is sent. */
  readonly keyHeader?: string;
  /** False: the document says nothing of this port. */
  readonly isDocumented?: boolean;
  /** Where connections come from; 127.0.0.1 unless told. */
  readonly localAddress?: string;
  /** Whom to trust where the port is TLS'; plain HTTP unless told. */
  readonly ca?: string;
}

/**
 * A client that sends exactly what it is told, over kept connections. An answer that the document
 * does not declare is a fault.
 */
export class HttpClient {
  readonly #port: number;
  readonly #agent: Agent;
  readonly key: string | undefined;
  readonly #terms: HttpClientTerms;

  constructor(port: number, key?: string, terms: HttpClientTerms = {}) {
    this.#port = port;
    this.key = key;
    this.#terms = terms;
    const options = { keepAlive: true, maxSockets: 16 };
    this.#agent =
      terms.ca === undefined ? new Agent(options) : new TlsAgent({ ...options, ca: terms.ca });
  }

  get = (path: string, ask: HttpAsk = {}): Promise<HttpAnswer> => this.send('GET', path, ask);
  post = (path: string, body?: unknown, ask: HttpAsk = {}): Promise<HttpAnswer> =>
    this.send('POST', path, body === undefined ? ask : { ...ask, body });
  put = (path: string, body?: unknown, ask: HttpAsk = {}): Promise<HttpAnswer> =>
    this.send('PUT', path, body === undefined ? ask : { ...ask, body });
  delete = (path: string, ask: HttpAsk = {}): Promise<HttpAnswer> => this.send('DELETE', path, ask);

  send(method: string, path: string, ask: HttpAsk = {}): Promise<HttpAnswer> {
    const payload = ask.raw ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body));
    const key = ask.key ?? this.key;
    const { keyHeader = 'SERVICE-API-KEY', isDocumented = true, localAddress, ca } = this.#terms;
    const headers: Record<string, string | number> = {
      ...(key === undefined ? {} : { [keyHeader]: key }),
      ...(payload === undefined
        ? {}
        : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(payload) }),
      ...ask.headers,
    };
    const asked = { port: this.#port, method, path };
    rememberRequest(this, asked);
    return new Promise((resolve, reject) => {
      const request = (ca === undefined ? httpRequest : tlsRequest)(
        {
          host: '127.0.0.1',
          port: this.#port,
          method,
          path,
          headers,
          agent: this.#agent,
          localAddress,
          signal: ask.signal,
        },
        (response) => {
          // EventReader reads these
          if (response.headers['content-type']?.startsWith('text/event-stream')) response.destroy();
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('close', () => {
            const text = Buffer.concat(chunks).toString('utf8');
            const named = Object.entries(response.headers).map(([name, value]) => [
              name,
              String(value),
            ]);
            const answer = {
              status: response.statusCode ?? 0,
              headers: Object.fromEntries(named),
              text,
              json: parsedBody(text),
            };
            rememberRequest(this, { ...asked, answer });
            try {
              if (isDocumented) checkDocumented(method, path, answer);
            } catch (error) {
              reject(error as Error);
              return;
            }
            resolve(answer);
          });
        },
      );
      request.on('error', (error) => {
        rememberRequest(this, { ...asked, error });
        reject(error);
      });
      request.end(payload);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Returns a client of the port that is for E2B's SDKs. */
export const compatibleClient = (port: number, key?: string): HttpClient =>
  new HttpClient(port, key, { keyHeader: 'X-API-KEY', isDocumented: false });

/** A bare connection, for bytes that no client library would send. */
export interface RawConnection {
  readonly socket: Socket;
  /** What came back so far. */
  readonly received: () => string;
  /** Resolves with everything that came back once the server closed; rejects after the deadline. */
  readonly closed: (deadlineMs?: number) => Promise<string>;
}

export const connectRaw = async (
  port: number,
  options: { readonly allowHalfOpen?: boolean } = {},
): Promise<RawConnection> => {
  const socket = connect({ port, host: '127.0.0.1', ...options });
  const chunks: Buffer[] = [];
  let [text, read] = ['', 0];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => {});
  const over = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  await once(socket, 'connect');
  /** Reads only what is new: a test that waits asks again and again. */
  const received = (): string => {
    for (; read < chunks.length; read += 1) text += chunks[read]?.toString('latin1') ?? '';
    return text;
  };
  return {
    socket,
    received,
    closed: async (deadlineMs = NEVER_COMES_MS) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`the connection is still open; received: ${received()}`)),
          deadlineMs,
        );
      });
      await Promise.race([over, late]).finally(() => clearTimeout(timer));
      return received();
    },
  };
};

/** Sends these bytes and waits for the server to close. */
export const exchangeRaw = async (
  port: number,
  bytes: string | Buffer,
  deadlineMs?: number,
): Promise<string> => {
  const connection = await connectRaw(port);
  connection.socket.write(bytes);
  return connection.closed(deadlineMs);
};

/** The first answer in what came back from a bare connection. */
export const parseRaw = (text: string): HttpAnswer => {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => [
      field.slice(0, field.indexOf(':')).toLowerCase(),
      field.slice(field.indexOf(':') + 1).trim(),
    ]),
  );
  const body = rest.join('\r\n\r\n').slice(0, Number(headers['content-length'] ?? 0));
  return { status: Number(line.split(' ')[1]), headers, text: body, json: parsedBody(body) };
};

/** The body parsed; an empty object where it is no JSON. */
export const parsedBody = (text: string): WireBody => {
  try {
    return JSON.parse(text) as WireBody;
  } catch {
    return {};
  }
};
