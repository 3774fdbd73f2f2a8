import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { RedisSettings } from '../../../src/redis/settings.ts';

/**
 * Speaks enough of Redis' protocol for connections and channels, and can withhold the answer to
 * SUBSCRIBE. Answers other commands with OK.
 */
export class FakeRedis {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #subscribers = new Map<string, Set<Socket>>();
  subscribing: 'is answered' | 'is not answered' | 'ends the connection' = 'is answered';
  subscriptions = 0;

  constructor() {
    this.#server = createServer((socket) => {
      this.#serve(socket);
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
  }

  get settings(): RedisSettings {
    return {
      urls: [`redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`],
      cluster: false,
      prefix: 'sandpool',
    };
  }

  /** Accepts new connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    this.cut();
    await closed;
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket
      .on('error', () => undefined)
      .on('close', () => {
        this.#sockets.delete(socket);
        for (const sockets of this.#subscribers.values()) sockets.delete(socket);
      });
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      for (let parsed = commandIn(text); parsed; parsed = commandIn(text)) {
        text = parsed.rest;
        this.#answer(socket, parsed.words);
      }
    });
  }

  #answer(socket: Socket, [name = '', ...words]: readonly string[]): void {
    switch (name.toLowerCase()) {
      case 'info':
        socket.write(bulk('loading:0\r\n'));
        return;
      case 'time':
        socket.write(`*2\r\n${bulk(String(Math.floor(Date.now() / 1_000)))}${bulk('0')}`);
        return;
      case 'ping':
        socket.write(this.#isSubscriber(socket) ? `*2\r\n${bulk('pong')}${bulk('')}` : '+PONG\r\n');
        return;
      case 'publish':
        this.#publish(words);
        socket.write(':0\r\n');
        return;
      case 'subscribe':
        this.#subscribe(socket, words);
        return;
      default:
        socket.write('+OK\r\n');
    }
  }

  #subscribe(socket: Socket, channels: readonly string[]): void {
    this.subscriptions += 1;
    if (this.subscribing === 'ends the connection') socket.destroy();
    if (this.subscribing !== 'is answered') return;
    for (const [at, channel] of channels.entries()) {
      this.#subscribers.set(channel, (this.#subscribers.get(channel) ?? new Set()).add(socket));
      socket.write(`*3\r\n${bulk('subscribe')}${bulk(channel)}:${at + 1}\r\n`);
    }
  }

  #publish([channel = '', text = '']: readonly string[]): void {
    for (const socket of this.#subscribers.get(channel) ?? [])
      socket.write(`*3\r\n${bulk('message')}${bulk(channel)}${bulk(text)}`);
  }

  #isSubscriber(socket: Socket): boolean {
    return [...this.#subscribers.values()].some((sockets) => sockets.has(socket));
  }
}

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/** The first complete command; ASCII only. */
const commandIn = (
  text: string,
): { readonly words: readonly string[]; readonly rest: string } | undefined => {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (!head) return undefined;
  const words: string[] = [];
  let at = head[0].length;
  for (let n = 0; n < Number(head[1]); n++) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at, at + 16));
    if (!size) return undefined;
    at += size[0].length;
    if (text.length < at + Number(size[1]) + 2) return undefined;
    words.push(text.slice(at, at + Number(size[1])));
    at += Number(size[1]) + 2;
  }
  return { words, rest: text.slice(at) };
};
