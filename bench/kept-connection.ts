import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly key?: string;
  /** JSON text. */
  readonly body?: string;
  readonly idempotencyKey?: string;
  /** Names the key as E2B's SDKs do. */
  readonly compatible?: boolean;
}

export interface RawAnswer {
  readonly status: number;
  readonly body: string;
}

const ANSWER_WITHIN_MS = 60_000;

/**
 * Does as little as it can, so that client and server on one machine measure the server: requests
 * are encoded before, and only status, length and body of an answer are read.
 */
export class KeptConnection {
  readonly #socket: Socket;
  #received = '';
  #waiting:
    | { readonly settle: (answer: RawAnswer) => void; readonly fail: (error: Error) => void }
    | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      this.#received += String(text);
      this.#look();
    });
    socket.on('error', (error) => this.#fail(error));
    socket.setTimeout(ANSWER_WITHIN_MS, () => {
      if (this.#waiting) socket.destroy(new Error(`no answer in ${ANSWER_WITHIN_MS / 1_000} s`));
    });
    socket.on('close', () => this.#fail(new Error('the connection was closed')));
  }

  static async open(port: number): Promise<KeptConnection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    return new KeptConnection(socket);
  }

  /**
   * Rejects if the connection breaks, no answer comes in a minute, or another answer is still due.
   */
  send(request: Buffer): Promise<RawAnswer> {
    if (this.#waiting || this.#socket.destroyed)
      return Promise.reject(
        new Error(this.#waiting ? 'the connection is busy' : 'the connection is closed'),
      );
    return new Promise((settle, fail) => {
      this.#waiting = { settle, fail };
      this.#socket.write(request);
    });
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  close(): void {
    this.#socket.destroy();
  }

  #look(): void {
    const head = this.#received.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#received)?.[1] ?? Number.NaN);
    const end = head + 4 + length;
    if (Number.isNaN(length))
      return this.#fail(new Error(`an answer without a length: ${this.#received.slice(0, head)}`));
    if (this.#received.length < end) return;
    const answer = {
      status: Number(this.#received.slice(9, 12)),
      body: this.#received.slice(head + 4, end),
    };
    this.#received = this.#received.slice(end);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.settle(answer);
  }

  #fail(error: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.fail(error);
  }
}

export const encodeAsk = ({
  method,
  path,
  key,
  body,
  idempotencyKey,
  compatible = false,
}: Ask): Buffer =>
  Buffer.from(
    [
      `${method} ${path} HTTP/1.1`,
      'Host: 127.0.0.1',
      ...(key === undefined ? [] : [`${compatible ? 'X-API-KEY' : 'SERVICE-API-KEY'}: ${key}`]),
      ...(idempotencyKey === undefined ? [] : [`Idempotency-Key: ${idempotencyKey}`]),
      ...(body === undefined
        ? []
        : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
      '',
      body ?? '',
    ].join('\r\n'),
  );
