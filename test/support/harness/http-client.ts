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
  /** An empty object without JSON. */
  readonly json: WireBody;
}

/** The fields of all bodies, by the names of docs/reference/api. */
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
  /** Sent as JSON; `raw` is sent unchanged. */
  readonly body?: unknown;
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** For another port than the REST API's. */
export interface HttpClientTerms {
  readonly keyHeader?: string;
  /** False for ports outside the document. */
  readonly isDocumented?: boolean;
  /** Source address; 127.0.0.1 by default. */
  readonly localAddress?: string;
  /** Authority for TLS; plain HTTP by default. */
  readonly ca?: string;
}

/** Sends exactly what it is given, over kept connections. Undeclared answers are faults. */
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

/** For the port of E2B's SDKs. */
export const compatibleClient = (port: number, key?: string): HttpClient =>
  new HttpClient(port, key, { keyHeader: 'X-API-KEY', isDocumented: false });

/** For bytes that no client library would send. */
export interface RawConnection {
  readonly socket: Socket;
  /** So far. */
  readonly received: () => string;
  /** Resolves with everything received once the server closed; rejects after the deadline. */
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
  /** Decodes only new bytes, since waiting tests call it often. */
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

export const exchangeRaw = async (
  port: number,
  bytes: string | Buffer,
  deadlineMs?: number,
): Promise<string> => {
  const connection = await connectRaw(port);
  connection.socket.write(bytes);
  return connection.closed(deadlineMs);
};

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

/** An empty object without JSON. */
export const parsedBody = (text: string): WireBody => {
  try {
    return JSON.parse(text) as WireBody;
  } catch {
    return {};
  }
};
