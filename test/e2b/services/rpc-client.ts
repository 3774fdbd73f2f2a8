import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';

export type Json = Readonly<Record<string, unknown>>;

export interface RpcAnswer {
  readonly status: number;
  readonly json: Json;
}

/** Sends bytes to a path, and returns the answer as it begins. */
export const sent = (
  port: number,
  path: string,
  {
    body,
    method = 'POST',
    headers = {},
  }: {
    readonly body?: Buffer | string;
    readonly method?: string;
    readonly headers?: OutgoingHttpHeaders;
  },
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = httpRequest({ port, path, method, headers, agent: false }, resolve);
    request.on('error', reject);
    request.end(body);
  });

/** Makes a call with one answer. */
export const call = async (
  port: number,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<RpcAnswer> => {
  const answer = await sent(port, path, {
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': 'application/json', 'connect-protocol-version': '1', ...headers },
  });
  const text = String(await buffer(answer));
  return { status: answer.statusCode ?? 0, json: text === '' ? {} : (JSON.parse(text) as Json) };
};

export const frame = (text: string, flags = 0): Buffer => {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
};

/** A stream of messages that is read as they come. */
export class RpcStream {
  readonly answer: IncomingMessage;
  readonly messages: Json[] = [];
  /** What the last frame says, once it came. */
  last: Json | undefined;
  #left = Buffer.alloc(0);
  readonly #pieces: AsyncIterator<Buffer>;

  constructor(answer: IncomingMessage) {
    this.answer = answer;
    this.#pieces = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  static async open(
    port: number,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RpcStream> {
    const answer = await sent(port, path, {
      body: Buffer.isBuffer(body) ? body : frame(JSON.stringify(body)),
      headers: {
        'content-type': 'application/connect+json',
        'connect-protocol-version': '1',
        ...headers,
      },
    });
    return new RpcStream(answer);
  }

  /** Reads on until a message is as wanted, and returns it. */
  async until(wanted: (message: Json) => boolean): Promise<Json> {
    for (;;) {
      const found = this.messages.find(wanted);
      if (found) return found;
      if (!(await this.#more()))
        throw new Error(`it ended: ${JSON.stringify([this.messages.slice(-3), this.last])}`);
    }
  }

  /** Reads to the last frame, and returns what that says. */
  async end(): Promise<Json> {
    while (this.last === undefined)
      if (!(await this.#more())) throw new Error('there was no last frame');
    return this.last;
  }

  leave(): void {
    this.answer.destroy();
  }

  async #more(): Promise<boolean> {
    if (this.last) return false;
    const { done, value } = await this.#pieces.next();
    if (done) return false;
    this.#left = Buffer.concat([this.#left, value]);
    while (this.#left.length >= 5 && this.#left.length >= 5 + this.#left.readUInt32BE(1)) {
      const end = 5 + this.#left.readUInt32BE(1);
      const message = JSON.parse(String(this.#left.subarray(5, end))) as Json;
      if (this.#left[0] === 2) this.last = message;
      else this.messages.push(message);
      this.#left = this.#left.subarray(end);
    }
    return true;
  }
}
