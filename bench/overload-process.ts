import { connect, type Socket } from 'node:net';
import { answerOrders } from './child.ts';
import { encodeAsk, type Ask } from './kept-connection.ts';
import { pause } from './process-facts.ts';

/** Sends by the clock, whatever the answers do. */
export interface FloodOrder {
  readonly port: number;
  readonly asks: readonly Ask[];
  readonly perSecond: number;
  readonly forMs: number;
  readonly connections: number;
  /** On one connection. If all are full, due requests are not sent. */
  readonly mostWaiting: number;
}

export interface FloodResult {
  readonly sent: number;
  readonly notSent: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** The flood opened another one for each. */
  readonly ended: number;
}

const TICK_MS = 2;
/** For answers on their way at the end. */
const LAST_ANSWERS_MS = 3_000;

interface Way {
  socket: Socket;
  waiting: number;
  received: string;
}

class Flood {
  readonly #order: FloodOrder;
  readonly #requests: readonly Buffer[];
  readonly #ways: Way[] = [];
  readonly #statuses: Record<string, number> = {};
  #sent = 0;
  #notSent = 0;
  #ended = 0;
  #turn = 0;
  #over = false;

  constructor(order: FloodOrder) {
    this.#order = order;
    this.#requests = order.asks.map(encodeAsk);
  }

  async run(): Promise<FloodResult> {
    const { connections, perSecond, forMs } = this.#order;
    for (let n = 0; n < connections; n += 1) this.#open(n);
    const began = performance.now();
    for (let elapsed = 0; elapsed < forMs; elapsed = performance.now() - began) {
      this.#send(Math.floor((elapsed * perSecond) / 1_000) - this.#sent - this.#notSent);
      await pause(TICK_MS);
    }
    const deadline = performance.now() + LAST_ANSWERS_MS;
    while (this.#ways.some(({ waiting }) => waiting > 0) && performance.now() < deadline)
      await pause(10);
    this.#over = true;
    for (const { socket } of this.#ways) socket.destroy();
    return {
      sent: this.#sent,
      notSent: this.#notSent,
      statuses: this.#statuses,
      ended: this.#ended,
    };
  }

  /** Drops a request if no connection has room for it. */
  #send(due: number): void {
    for (let left = due; left > 0; left -= 1) {
      const way = this.#wayWithRoom();
      const request = this.#requests[this.#sent % this.#requests.length];
      if (!way || !request) {
        this.#notSent += left;
        return;
      }
      way.waiting += 1;
      way.socket.write(request);
      this.#sent += 1;
    }
  }

  #wayWithRoom(): Way | undefined {
    for (let tried = 0; tried < this.#ways.length; tried += 1) {
      this.#turn = (this.#turn + 1) % this.#ways.length;
      const way = this.#ways[this.#turn];
      if (way?.socket.writable && way.waiting < this.#order.mostWaiting) return way;
    }
    return undefined;
  }

  #open(at: number): void {
    const socket = connect({ port: this.#order.port, host: '127.0.0.1', noDelay: true });
    const way: Way = { socket, waiting: 0, received: '' };
    this.#ways[at] = way;
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      way.received += String(text);
      this.#read(way);
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      if (this.#over) return;
      this.#ended += 1;
      setTimeout(() => {
        if (!this.#over) this.#open(at);
      }, TICK_MS);
    });
  }

  #read(way: Way): void {
    for (;;) {
      const head = way.received.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(
        /\r\ncontent-length: (\d+)/i.exec(way.received.slice(0, head + 2))?.[1] ?? 0,
      );
      if (way.received.length < head + 4 + length) return;
      const status = way.received.slice(9, 12);
      this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
      way.waiting -= 1;
      way.received = way.received.slice(head + 4 + length);
    }
  }
}

answerOrders((order: FloodOrder) => new Flood(order).run());
