import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** An answer that is no stream. */
export interface WholeAnswer {
  status: number;
  readonly headers: IncomingHttpHeaders;
  body: Buffer;
}

/** A message of a stream, or its end. */
export interface Frame {
  readonly flags: number;
  readonly text: string;
}

/** What is changed of what passes; absent: nothing. */
export interface Changes {
  /** Changes headers before they go on. */
  readonly request?: (headers: IncomingHttpHeaders, path: string) => void;
  readonly whole?: (answer: WholeAnswer, path: string) => void;
  /** Returns what passes in the place of a frame. */
  readonly frame?: (frame: Frame, path: string) => readonly Frame[];
  /** Returns an answer that takes the place of a stream that begins so. */
  readonly instead?: (first: Frame, path: string) => Omit<WholeAnswer, 'headers'> | undefined;
}

export const LAST = 2;

/** A server between an SDK and the API, that sees all of it in clear. */
export class ProxyBetween {
  readonly #target: URL;
  readonly #changes: Changes;
  readonly #server: Server;

  constructor(target: string, changes: Changes) {
    [this.#target, this.#changes] = [new URL(target), changes];
    this.#server = createServer({ keepAliveTimeout: 65_000 }, (asked, answer) =>
      this.#pass(asked, answer),
    );
  }

  /** Returns where it is. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #pass(asked: IncomingMessage, answer: ServerResponse): void {
    const { method, url = '/' } = asked;
    const [path = '/'] = url.split('?', 1);
    const headers = { ...asked.headers };
    this.#changes.request?.(headers, path);
    const { hostname, port } = this.#target;
    const onward = httpRequest({ hostname, port, method, path: url, headers, agent: false });
    const cut = (): void => void answer.destroy();
    answer.once('close', () => onward.destroy());
    onward.on('error', cut);
    onward.on('response', (given) => {
      given.on('error', cut);
      const isStream = given.headers['content-type'] === 'application/connect+json';
      (isStream ? this.#stream(given, answer, path) : this.#whole(given, answer, path)).catch(cut);
    });
    asked.on('error', () => onward.destroy()).pipe(onward);
  }

  async #whole(given: IncomingMessage, answer: ServerResponse, path: string): Promise<void> {
    const { statusCode: status = 0, headers } = given;
    const whole = { status, headers: { ...headers }, body: await buffer(given) };
    this.#changes.whole?.(whole, path);
    send(answer, whole);
  }

  async #stream(given: IncomingMessage, answer: ServerResponse, path: string): Promise<void> {
    const { frame = (each) => [each], instead } = this.#changes;
    for await (const each of framesOf(given)) {
      if (!answer.headersSent) {
        const other = instead?.(each, path);
        if (other) return send(answer, { ...other, headers: JSON_ANSWER });
        const { 'content-type': type = '' } = given.headers;
        answer.writeHead(given.statusCode ?? 0, { 'content-type': type });
      }
      const passed = frame(each, path);
      for (const one of passed) answer.write(bytesOf(one));
      if (passed.some(({ flags }) => (flags & LAST) !== 0)) break;
    }
    answer.end();
  }
}

const JSON_ANSWER = { 'content-type': 'application/json' };

const send = (answer: ServerResponse, { status, headers, body }: WholeAnswer): void => {
  const { 'transfer-encoding': _chunked, connection: _hop, ...rest } = headers;
  const sized = status === 204 ? rest : { ...rest, 'content-length': body.length };
  answer.writeHead(status, sized as IncomingHttpHeaders).end(body);
};

const bytesOf = ({ flags, text }: Frame): Buffer => {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
};

async function* framesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let left = Buffer.alloc(0);
  for await (const piece of stream) {
    left = Buffer.concat([left, piece]);
    while (left.length >= 5 && left.length >= 5 + left.readUInt32BE(1)) {
      const end = 5 + left.readUInt32BE(1);
      yield { flags: left[0] ?? 0, text: left.toString('utf8', 5, end) };
      left = left.subarray(end);
    }
  }
}
