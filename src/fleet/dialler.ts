import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { Clock } from '../contracts/clock.ts';
import type { GlobalTemplateCopies } from '../contracts/fleet/global-templates.ts';
import type { PromotedKeyCopies } from '../contracts/fleet/promoted-keys.ts';
import type { Log } from '../contracts/log.ts';
import { MOST_MESSAGE_BYTES, channelName } from './link-channel.ts';
import { fingerprintOf } from './fleet-keys.ts';
import { LINK_PATH } from './manager-links.ts';
import type { WorkerCredentials } from './worker-credentials.ts';
import {
  WorkerLink,
  type IdentityCheck,
  type LinkEnd,
  type ManagerReplica,
} from './worker-link.ts';

const DIAL_MS = 5_000;
/** The first wait after a cut; each further one is twice as long. */
const FIRST_WAIT_MS = 100;
const MOST_WAIT_MS = 1_000;
/** The wait after a refusal, which haste does not help. */
const LONG_WAIT_MS = 10_000;
/** Dials in a row that lead to replicas which are linked already, for each replica there is. */
const MOST_HELD = 10;

export interface DialTerms {
  readonly clusterId: string;
  /** This replica of the cluster. */
  readonly replica: string;
  readonly credentials: WorkerCredentials;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: PromotedKeyCopies;
  readonly templates: GlobalTemplateCopies;
  readonly serve: (connection: Duplex, check: IdentityCheck) => void;
}

/** Knows all links of a worker, whatever address they were dialled at. */
export interface KnownLinks {
  /** Says whether a link to this replica stands. */
  holds(replica: ManagerReplica): boolean;
  /** Counts the links to a manager that are missing. */
  missing(managerKey: string): number;
  opened(address: string, link: WorkerLink, to: ManagerReplica): void;
  ended(link: WorkerLink, to: ManagerReplica): void;
  /** The manager says how many replicas it has. */
  told(by: ManagerReplica, replicas: number): void;
}

/** Opens links to whatever answers at one address, one at a time, as long as any are missing. */
export class Dialler {
  readonly #address: string;
  readonly #deps: DialTerms;
  readonly #links: KnownLinks;
  /** The manager that answered here last. */
  #managerKey: string | undefined;
  #socket: WebSocket | undefined;
  #waitMs = FIRST_WAIT_MS;
  #held = 0;
  #callOff: (() => void) | undefined;
  #stopped = false;
  #told: string | undefined;

  constructor(address: string, deps: DialTerms, links: KnownLinks) {
    this.#address = address;
    this.#deps = deps;
    this.#links = links;
  }

  /** Dials where a link is missing, and it does not already. */
  consider(): void {
    if (this.#stopped || this.#socket || this.#callOff) return;
    if (this.#managerKey !== undefined && this.#links.missing(this.#managerKey) <= 0) return;
    this.#dial();
  }

  stop(): void {
    this.#stopped = true;
    this.#callOff?.();
    this.#socket?.terminate();
  }

  #dial(): void {
    const socket = new WebSocket(new URL(LINK_PATH, this.#address), {
      perMessageDeflate: false,
      // what is masked with zeros stays as it is: no page of a browser speaks over a link
      generateMask: (mask) => mask.fill(0),
      maxPayload: MOST_MESSAGE_BYTES,
      handshakeTimeout: DIAL_MS,
      followRedirects: false,
    });
    this.#socket = socket;
    let failure = 'the connection ended';
    let channel = '';
    socket.on('error', ({ message }) => {
      failure = message;
    });
    const closed = (): void => this.#over(failure, 'cut');
    socket.once('close', closed);
    socket.once('upgrade', (answer) => {
      channel = channelName(answer.socket);
    });
    socket.once('open', () => {
      socket.off('close', closed);
      this.#link(socket, channel);
    });
  }

  #link(socket: WebSocket, channel: string): void {
    let to: ManagerReplica | undefined;
    const address = new URL(this.#address).origin;
    const link: WorkerLink = new WorkerLink(socket, {
      ...this.#deps,
      address,
      channel,
      proved: (manager) => {
        this.#managerKey = manager.managerKey;
        const fingerprint = fingerprintOf(manager.managerKey);
        this.#deps.keys.leadsTo(address, fingerprint);
        this.#deps.templates.leadsTo(address, fingerprint);
        return this.#links.holds(manager) ? 'held' : 'new';
      },
      opened: (manager, replicas) => {
        to = manager;
        this.#links.opened(this.#address, link, manager);
        this.#socket = undefined;
        this.#waitMs = FIRST_WAIT_MS;
        this.#held = 0;
        this.#told = undefined;
        this.#links.told(manager, replicas);
      },
      told: (manager, replicas) => this.#links.told(manager, replicas),
      over: (why, kind) => {
        if (!to) return this.#over(why, kind);
        if (!this.#stopped) this.#tell(why);
        this.#wait(FIRST_WAIT_MS);
        this.#links.ended(link, to);
      },
    });
  }

  /** Waits, and dials again, where a link came to nothing. */
  #over(why: string, kind: LinkEnd): void {
    this.#socket = undefined;
    if (this.#stopped) return;
    this.#held = kind === 'held' ? this.#held + 1 : 0;
    const inVain = this.#held >= MOST_HELD * this.#replicasMissed();
    if (kind !== 'held') this.#tell(why);
    else if (inVain) this.#tell('it leads to some of its replicas alone; it must to each in turn');
    this.#wait(kind === 'refused' || inVain ? LONG_WAIT_MS : this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 2, MOST_WAIT_MS);
  }

  #replicasMissed(): number {
    return Math.max(1, this.#managerKey === undefined ? 1 : this.#links.missing(this.#managerKey));
  }

  /** Logs why there is no link; the same cause again and again is one line. */
  #tell(why: string): void {
    if (this.#told !== why)
      this.#deps.log.warn({ manager: this.#address, why }, 'no link to a manager');
    this.#told = why;
  }

  #wait(forMs: number): void {
    if (this.#callOff) return;
    const { clock } = this.#deps;
    this.#callOff = clock.at(clock.now() + forMs, () => {
      this.#callOff = undefined;
      this.consider();
    });
  }
}
