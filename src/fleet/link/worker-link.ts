import {
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import type { z } from 'zod';
import type { Clock } from '../../contracts/clock.ts';
import type { RoutedRequest } from '../../contracts/fleet/cluster-links.ts';
import type {
  GlobalTemplateChange,
  GlobalTemplateCopies,
} from '../../contracts/fleet/global-templates.ts';
import type { PromotedChange, PromotedKeyCopies } from '../../contracts/fleet/promoted-keys.ts';
import type { Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import { fingerprintOf, newNonce, signatureCheck } from './fleet-keys.ts';
import { Heartbeat } from './heartbeat.ts';
import { identityCheck, newSecretHalf } from './identity.ts';
import {
  answerWords,
  LINK_SETTINGS,
  MOST_MEMORY_MB,
  MOST_TUNNELS,
  wordsReader,
  workerWindow,
} from './link-calls.ts';
import { endSession, type LinkChannel, TunnelSocket } from './link-channel.ts';
import {
  isOfOtherEnd,
  LINK_VERSION,
  ManagerHello,
  ManagerProof,
  Refused,
  ReplicaCount,
  transcriptOf,
  UnsoundWord,
  Welcome,
  type WorkerHello,
} from './link-words.ts';
import { KEY_WORDS, TEMPLATE_WORDS, TemplateQuestion } from './told/record-words.ts';
import { RecordListener, MOST_TOLD } from './told/told-records.ts';
import type { WorkerCredentials } from './worker-credentials.ts';

/** Undefined if the identity is invalid, a Refusal if it is only too old. */
export type IdentityCheck = (
  identity: string,
  request: RoutedRequest,
) => Caller | Refusal | undefined;

export interface LinksOfWorker {
  readonly clusterId: string;
  readonly credentials: WorkerCredentials;
  readonly clock: Clock;
  readonly keys: PromotedKeyCopies;
  readonly templates: GlobalTemplateCopies;
  readonly replica: string;
  /** Absent if replicas share the store. */
  readonly start?: string;
  readonly serve: (connection: Duplex, check: IdentityCheck) => void;
}

export interface WorkerLinkTerms extends LinksOfWorker {
  readonly address: string;
  readonly channel: string;
  /** `held`: a link to this replica exists. */
  readonly proved: (manager: ManagerReplica) => 'new' | 'held';
  readonly opened: (manager: ManagerReplica, replicas: number) => void;
  readonly told: (manager: ManagerReplica, replicas: number) => void;
  readonly over: (why: string, kind: LinkEnd) => void;
}

/**
 * `copied`: another start of this cluster is linked; retry after it ends. `held`: another link
 * leads to the same replica. `failed`: this end could not apply a message.
 */
export type LinkEnd = 'cut' | 'refused' | 'copied' | 'held' | 'failed';

const COPIED =
  'another daemon of this cluster is linked to it, with the same data or a copy of them. ' +
  'Stop one of the two for good; to keep both, start this daemon with an empty data folder, ' +
  'and its own cluster id and join token. Until then it keeps trying';

export interface ManagerReplica {
  readonly managerKey: string;
  readonly replica: string;
}

interface Words {
  readonly manager: ManagerHello;
  readonly worker: WorkerHello;
}

interface Heard {
  readonly keys: RecordListener<PromotedChange>;
  readonly templates: RecordListener<GlobalTemplateChange>;
}

const TOLD: ReadonlySet<string> = new Set([KEY_WORDS.path, TEMPLATE_WORDS.path]);

/** Longer than the manager's own deadline to refuse. */
const TAKE_IN_MS = 15_000;

export class WorkerLink {
  readonly #channel: LinkChannel;
  readonly #terms: WorkerLinkTerms;
  readonly #session: ServerHttp2Session;
  #words: Words | undefined;
  readonly #half = newSecretHalf();
  readonly #read = wordsReader(TOLD, 2 * MOST_TOLD);
  /** Set once the manager has authenticated. */
  #heard: Heard | undefined;
  #isHeld = false;
  #check: IdentityCheck | undefined;
  #heartbeat: Heartbeat | undefined;
  readonly #callOff: () => void;
  /** The open request that is answered when the worker leaves. */
  #leaveAsked: ServerHttp2Stream | undefined;
  readonly #tunnels = new Set<TunnelSocket>();
  #whenIdle: (() => void) | undefined;
  /** Shortest PING: a queued one does not measure the path. */
  #latencyMs = Infinity;
  #over = false;

  constructor(channel: LinkChannel, terms: WorkerLinkTerms) {
    this.#channel = channel;
    this.#terms = terms;
    const { clock } = terms;
    this.#callOff = clock.at(clock.now() + TAKE_IN_MS, () =>
      this.end('the manager did not accept it in time', 'cut'),
    );
    this.#session = performServerHandshake(channel.stream, {
      maxSessionMemory: MOST_MEMORY_MB,
      settings: LINK_SETTINGS,
    });
    this.#session.setLocalWindowSize(workerWindow(0));
    this.#session.on('stream', (stream, headers) => {
      stream.on('error', () => undefined); // its end reports the error too
      if (stream.closed) return; // already reset: an answer is no longer possible
      const method = headers[':method'];
      if (method === 'CONNECT') this.#tunnel(stream);
      else void this.#answer(stream, String(headers[':path']));
    });
    this.#session.on('error', (error) => this.end(error.message, 'cut'));
    this.#session.once('close', () => this.end('the connection ended', 'cut'));
    channel.stream.once('close', () => this.end('the connection ended', 'cut'));
  }

  /** Requests in progress go on. */
  leave(): void {
    if (this.#leaveAsked) answerWords(this.#leaveAsked, 200, {});
    this.#leaveAsked = undefined;
  }

  async idle(): Promise<void> {
    if (this.#tunnels.size === 0 || this.#over) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  /** May be repeated. */
  end(why: string, kind: LinkEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#callOff();
    this.#heartbeat?.stop();
    this.#heard?.keys.end();
    this.#heard?.templates.end();
    this.#whenIdle?.();
    this.#terms.over(why, this.#isHeld ? 'held' : kind);
    for (const tunnel of this.#tunnels) tunnel.destroy(); // it can carry no more answers
    endSession(this.#session, this.#channel);
  }

  #tunnel(stream: ServerHttp2Stream): void {
    if (!this.#check || this.#tunnels.size >= MOST_TUNNELS) {
      stream.respond({ ':status': 503 }, { endStream: true });
      return;
    }
    const tunnel = new TunnelSocket(stream, 'server');
    this.#tunnels.add(tunnel);
    stream.once('close', () => {
      this.#tunnels.delete(tunnel);
      if (this.#tunnels.size === 0) this.#whenIdle?.();
    });
    stream.respond({ ':status': 200 });
    this.#terms.serve(tunnel, this.#check);
  }

  async #answer(stream: ServerHttp2Stream, path: string): Promise<void> {
    let kind: LinkEnd = 'cut';
    try {
      const body = await this.#read(stream, path);
      if (this.#over) return;
      if (path === '/leave' && this.#check) {
        this.#leaveAsked = stream;
        return;
      }
      kind = 'failed';
      const answer = await this.#hear(path, body);
      answerWords(stream, answer ? 200 : 404, answer ?? {});
      if (path === '/welcome' && answer) this.#begin(Welcome.parse(body).replicas);
    } catch (error) {
      answerWords(stream, 400, {});
      const why = error instanceof Error ? error.message : String(error);
      this.end(why, isOfOtherEnd(error) ? 'refused' : kind);
    }
  }

  /** Undefined if the message is unknown or not allowed now. */
  #hear(path: string, body: unknown): Promise<object | undefined> | object | undefined {
    const words = this.#words;
    if (!words) return path === '/hello' ? this.#greet(ManagerHello.parse(body)) : undefined;
    if (path === '/prove') return this.#prove(words, body);
    if (path === '/refused') return this.#refused(words.manager.managerKey, Refused.parse(body));
    if (path === KEY_WORDS.path) return this.#heard?.keys.take(body);
    if (path === '/welcome') return this.#welcome(words, body);
    return this.#check && this.#hearOpen(words.manager, path, body);
  }

  #greet(manager: ManagerHello): WorkerHello {
    const { credentials, clusterId, replica, address, start } = this.#terms;
    const worker = {
      ...{ version: LINK_VERSION, clusterID: clusterId, clusterKey: credentials.key.publicKey },
      ...{ nonce: newNonce(), replica, address, half: this.#half.publicKey, start },
    };
    this.#words = { manager, worker };
    return worker;
  }

  #prove({ manager, worker }: Words, body: unknown): object | undefined {
    if (this.#heard || this.#isHeld) return undefined;
    const { credentials, channel, proved } = this.#terms;
    const isSigned = signatureCheck(manager.managerKey);
    const { signature } = ManagerProof.parse(body);
    const transcript = transcriptOf('manager', manager, worker);
    if (!isSigned?.(transcript, signature))
      throw new UnsoundWord('the manager does not have the key that it names');
    if (manager.channel !== '' && manager.channel !== channel)
      throw new UnsoundWord(
        'the link was relayed by another party between the manager and this cluster',
      );
    if (!credentials.trusts(manager.managerKey))
      throw new UnsoundWord('this is not the manager that the cluster joined or has a token of');
    if (proved(manager) === 'held') {
      this.#isHeld = true; // the manager ends the link
      return { held: true };
    }
    this.#heard = this.#listen(fingerprintOf(manager.managerKey), { isSigned, transcript });
    return {
      signature: credentials.key.sign(transcriptOf('worker', manager, worker)),
      joinToken: credentials.joinTokenFor(manager.managerKey),
    };
  }

  #welcome({ manager, worker }: Words, body: unknown): object | undefined {
    if (!this.#heard?.keys.isCaughtUp || this.#check) return undefined;
    const { credentials, clusterId, clock } = this.#terms;
    const { linkId } = Welcome.parse(body);
    const secret = this.#half.agree(manager.half, transcriptOf('manager', manager, worker));
    if (!secret) throw new UnsoundWord('the manager sent an invalid public key');
    credentials.joined(manager.managerKey);
    this.#check = identityCheck(secret.isSigned, {
      ...{ clusterId, linkId, clock },
      isOff: () => this.end('the clock of one end stopped', 'cut'), // the worker dials again
    });
    return {};
  }

  #hearOpen(manager: ManagerHello, path: string, body: unknown) {
    if (path === TEMPLATE_WORDS.path) return this.#heard?.templates.take(body);
    if (path === '/template')
      return this.#report(manager.managerKey, TemplateQuestion.parse(body).globalId);
    if (path !== '/replicas') return undefined;
    this.#terms.told(manager, ReplicaCount.parse(body).replicas);
    return {};
  }

  /** Undefined if the store does not answer; the link stays up. */
  #report(managerKey: string, globalId: string): Promise<object | undefined> {
    const { templates } = this.#terms;
    return templates.report(fingerprintOf(managerKey), globalId).catch(() => undefined);
  }

  #listen(
    manager: string,
    terms: Pick<ConstructorParameters<typeof RecordListener>[0], 'isSigned' | 'transcript'>,
  ): Heard {
    const { keys, templates } = this.#terms;
    return {
      keys: new RecordListener({ ...terms, words: KEY_WORDS, visit: keys.begin(manager) }),
      templates: new RecordListener({
        ...terms,
        words: TEMPLATE_WORDS,
        visit: templates.begin(manager),
      }),
    };
  }

  async #refused(
    managerKey: string,
    { error, left, copied }: z.infer<typeof Refused>,
  ): Promise<object> {
    // only for an authenticated manager
    if (left && this.#heard) {
      await this.#heard.keys.left();
      await this.#heard.templates.left();
      this.#terms.credentials.left(managerKey);
    }
    if (copied) this.end(`the manager refuses: ${COPIED}`, 'copied');
    this.end(`the manager refuses: ${error}`, 'refused');
    return {};
  }

  #begin(replicas: number): void {
    if (this.#over || !this.#words) return;
    this.#callOff();
    this.#heartbeat = new Heartbeat(this.#session, {
      clock: this.#terms.clock,
      channel: this.#channel,
      answered: (tookMs) => this.#fitWindow(tookMs),
      heard: () => undefined,
      dead: (why) => this.end(why, 'cut'),
    });
    this.#heartbeat.start();
    this.#terms.opened(this.#words.manager, replicas);
  }

  #fitWindow(tookMs: number): void {
    if (tookMs >= this.#latencyMs || this.#over) return;
    this.#latencyMs = tookMs;
    this.#session.setLocalWindowSize(workerWindow(tookMs));
  }
}
