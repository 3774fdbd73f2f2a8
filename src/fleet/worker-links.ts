import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { Clock } from '../contracts/clock.ts';
import type { PromotedKeyCopies } from '../contracts/fleet/promoted-keys.ts';
import type { Log } from '../contracts/log.ts';
import { MOST_MESSAGE_BYTES } from './link-channel.ts';
import { LINK_PATH } from './manager-links.ts';
import type { WorkerCredentials } from './worker-credentials.ts';
import { WorkerLink, type IdentityCheck } from './worker-link.ts';

const DIAL_MS = 5_000;
/** The first wait after a cut; each further one is twice as long. */
const FIRST_WAIT_MS = 100;
const MOST_WAIT_MS = 1_000;
/** The wait after a refusal, which haste does not help. */
const REFUSED_WAIT_MS = 10_000;

export interface WorkerLinksDeps {
  readonly clusterId: string;
  /** Addresses of the managers, `ws://` or `wss://`. */
  readonly managers: readonly string[];
  readonly credentials: WorkerCredentials;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: PromotedKeyCopies;
  readonly serve: (connection: Duplex, check: IdentityCheck) => void;
}

/** Keeps a link open to each manager, and opens it anew where it was cut, within a second or so. */
export class WorkerLinks {
  readonly #links: readonly KeptLink[];

  constructor(deps: WorkerLinksDeps) {
    this.#links = deps.managers.map((manager) => new KeptLink(manager, deps));
  }

  start(): void {
    for (const link of this.#links) link.start();
  }

  stop(): void {
    for (const link of this.#links) link.stop();
  }
}

class KeptLink {
  readonly #manager: string;
  readonly #deps: WorkerLinksDeps;
  #link: WorkerLink | undefined;
  #socket: WebSocket | undefined;
  #waitMs = FIRST_WAIT_MS;
  #callOff: () => void = () => {};
  #stopped = false;
  #told: string | undefined;

  constructor(manager: string, deps: WorkerLinksDeps) {
    this.#manager = manager;
    this.#deps = deps;
  }

  start(): void {
    const socket = new WebSocket(new URL(LINK_PATH, this.#manager), {
      perMessageDeflate: false,
      maxPayload: MOST_MESSAGE_BYTES,
      handshakeTimeout: DIAL_MS,
      followRedirects: false,
    });
    this.#socket = socket;
    let failure = 'the connection ended';
    socket.on('error', ({ message }) => {
      failure = message;
    });
    const closed = (): void => this.#over(failure, 'cut');
    socket.once('close', closed);
    socket.once('open', () => {
      socket.off('close', closed);
      this.#link = new WorkerLink(socket, {
        ...this.#deps,
        opened: () => this.#opened(),
        over: (why, kind) => this.#over(why, kind),
      });
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#callOff();
    this.#link?.end('the daemon stops', 'cut');
    this.#socket?.terminate();
  }

  #opened(): void {
    this.#waitMs = FIRST_WAIT_MS;
    this.#told = undefined;
    this.#deps.log.info({ manager: this.#manager }, 'linked to a manager');
  }

  #over(why: string, kind: 'cut' | 'refused'): void {
    this.#link = undefined;
    this.#socket = undefined;
    if (this.#stopped) return;
    const { clock, log } = this.#deps;
    // the same cause again and again is one line
    if (this.#told !== why) log.warn({ manager: this.#manager, why }, 'no link to a manager');
    this.#told = why;
    const waitMs = kind === 'refused' ? REFUSED_WAIT_MS : this.#waitMs;
    this.#waitMs = Math.min(this.#waitMs * 2, MOST_WAIT_MS);
    this.#callOff = clock.at(clock.now() + waitMs, () => this.start());
  }
}
