import { randomUUID } from 'node:crypto';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { z } from 'zod';
import type { Clock } from '../../contracts/clock.ts';
import type { ClusterRoute, LinkView } from '../../contracts/fleet/cluster-links.ts';
import type { CopyReport, GlobalTemplateSource } from '../../contracts/fleet/global-templates.ts';
import type { PromotedKeySource } from '../../contracts/fleet/promoted-keys.ts';
import type { ToldSource } from '../../contracts/fleet/told-records.ts';
import type { Log } from '../../contracts/log.ts';
import type { ClusterRegistry } from './cluster-registry.ts';
import { type FleetKey, newNonce, signatureCheck } from './fleet-keys.ts';
import { Heartbeat } from './heartbeat.ts';
import { type LinkSecret, newSecretHalf, identitySigner } from './identity.ts';
import { ask, askInTime, LINK_SETTINGS, MOST_MEMORY_MB, WINDOW_BYTES } from './link-calls.ts';
import { endSession, type LinkChannel, TunnelSocket } from './link-channel.ts';
import {
  isOfOtherEnd,
  LINK_VERSION,
  type ManagerHello,
  type Refused,
  transcriptOf,
  WorkerHello,
  WorkerProof,
} from './link-words.ts';
import { KEY_WORDS, TEMPLATE_WORDS, TemplateReport } from './told/record-words.ts';
import { RecordTeller, type ToldWords } from './told/told-records.ts';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';

export interface LinksOfReplica {
  readonly registry: ClusterRegistry;
  readonly key: FleetKey;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: PromotedKeySource;
  readonly templates: GlobalTemplateSource;
  readonly replica: string;
  /** URLs that workers may dial; if empty, any. */
  readonly addresses: readonly string[];
}

export interface ManagerLinkTerms extends LinksOfReplica {
  readonly replicas: () => number;
  readonly channel: string;
  /** Resolves with false if another start of the same daemon is linked. */
  readonly proved: (clusterId: string, start: string | undefined) => Promise<boolean>;
  readonly heard: (clusterId: string) => void;
  /** Called once. `worker` is undefined if the link had not opened. */
  readonly over: (worker: LinkedWorker | undefined, why: string) => void;
}

export interface LinkedWorker {
  readonly clusterId: string;
  readonly publicKey: string;
  readonly replica: string;
}

type Teller = Pick<RecordTeller<unknown>, 'settled' | 'stop' | 'tellAll' | 'tellBeside'>;

interface ProvedWorker {
  readonly worker: LinkedWorker;
  readonly tellerOfTemplates: () => Teller;
  readonly signer: Pick<LinkSecret, 'sign'>;
}

const REMOVED = 'the cluster was removed';
const DISMISSED_MS = 2_000;
const REPORT_MS = 2_000;
/** Allows for queueing behind large transfers. */
const TOLD_MS = 30_000;
const OPEN_MS = 10_000;

export class ManagerLink {
  readonly #channel: LinkChannel;
  readonly #terms: ManagerLinkTerms;
  readonly #session: ClientHttp2Session;
  #heartbeat: Heartbeat | undefined;
  #keys: Teller | undefined;
  #templates: Teller | undefined;
  #worker: LinkedWorker | undefined;
  #route: ClusterRoute | undefined;
  #opened: Pick<LinkView, 'linkId' | 'openedAt'> | undefined;
  #named: Pick<LinkedWorker, 'clusterId' | 'replica'> | undefined;
  #keysRemade = 0;
  #over = false;

  constructor(channel: LinkChannel, terms: ManagerLinkTerms) {
    this.#channel = channel;
    this.#terms = terms;
    this.#session = connect('http://worker', {
      createConnection: () => channel.stream,
      maxSessionMemory: MOST_MEMORY_MB,
      settings: LINK_SETTINGS,
    });
    this.#session.once('connect', () => this.#session.setLocalWindowSize(WINDOW_BYTES));
    this.#session.on('error', (error) => this.cut(error.message));
    this.#session.once('close', () => this.cut('the connection ended'));
    channel.stream.once('close', () => this.cut('the connection ended'));
  }

  get worker(): LinkedWorker | undefined {
    return this.#worker;
  }

  /** Undefined if the link is silent or the worker is leaving. */
  get route(): ClusterRoute | undefined {
    return this.isSilent ? undefined : this.#route;
  }

  get isOver(): boolean {
    return this.#over;
  }

  get isSilent(): boolean {
    return this.#heartbeat?.isSilent === true;
  }

  probe(silent: () => void): void {
    this.#heartbeat?.probe(silent); // a link that is not open yet has its own deadline
  }

  /** Undefined until the link is open. */
  get view(): LinkView | undefined {
    if (!this.#opened || !this.#worker) return undefined;
    const standing = this.isSilent ? 'Silent' : 'Open';
    return {
      ...this.#opened,
      replica: this.#worker.replica,
      status: this.#route ? standing : 'Leaving',
      latencyMs: this.#heartbeat?.latencyMs || undefined,
      keysRemade: this.#keysRemade,
    };
  }

  /**
   * Undefined if the worker already has a link to this replica. Rejects if authentication fails.
   */
  async open(): Promise<LinkedWorker | undefined> {
    const { clock } = this.#terms;
    const callOff = clock.at(clock.now() + OPEN_MS, () => this.cut('it took too long to open'));
    try {
      const proved = await this.#proved();
      if (!proved) return undefined;
      const { worker, signer, tellerOfTemplates } = proved;
      const linkId = randomUUID();
      const { clusterId } = worker;
      const terms = { clusterId, linkId, signer, clock };
      const route = routeOver(this.#session, { ...terms, heartbeat: () => this.#heartbeat });
      await ask(this.#session, '/welcome', { linkId, replicas: this.#terms.replicas() });
      this.#worker = worker;
      this.#route = route;
      this.#opened = { linkId, openedAt: clock.now() };
      this.#heartbeat = new Heartbeat(this.#session, {
        clock,
        channel: this.#channel,
        heard: () => this.#terms.heard(clusterId),
        dead: (because) => this.cut(because),
      });
      if (!this.#over) this.#heartbeat.start();
      void this.#untilItLeaves();
      if (!this.#over) this.#templates = tellerOfTemplates();
      this.#templates?.tellBeside();
      if (this.#over) throw new Error('the link was closed while it opened');
      return worker;
    } finally {
      callOff();
    }
  }

  tellReplicas(): void {
    if (this.#session.closed || this.#session.destroyed) return;
    const { clock, replicas } = this.#terms;
    const word = { path: '/replicas', body: { replicas: replicas() }, clock };
    askInTime(this.#session, { ...word, withinMs: TOLD_MS }).catch(this.#cutUnlessSound);
  }

  /** May be repeated. */
  cut(why: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#route = undefined;
    this.#heartbeat?.stop();
    this.#keys?.stop();
    this.#templates?.stop();
    this.#terms.over(this.#worker, why);
    endSession(this.#session, this.#channel);
  }

  async keysSettled(): Promise<void> {
    await this.#keys?.settled();
  }

  async templatesSettled(): Promise<void> {
    await this.#templates?.settled();
  }

  /** Rejects if no answer comes in 2 s. */
  async report(globalId: string): Promise<CopyReport> {
    const word = { path: '/template', body: { globalId }, clock: this.#terms.clock };
    return TemplateReport.parse(await askInTime(this.#session, { ...word, withinMs: REPORT_MS }));
  }

  async dismiss(): Promise<void> {
    const { clock } = this.#terms;
    const callOff = clock.at(clock.now() + DISMISSED_MS, () => this.cut(REMOVED));
    await ask(this.#session, '/refused', { error: REMOVED, left: true }).catch(() => undefined);
    callOff();
    this.cut(REMOVED);
  }

  #teller<Told>(
    words: ToldWords<Told, unknown>,
    source: ToldSource<Told>,
    transcript: string,
  ): RecordTeller<Told> {
    const { key, clock } = this.#terms;
    const failed = (why: string): void => this.cut(why);
    return new RecordTeller({
      ...{ words, source, session: this.#session, key, transcript, clock, failed },
      remade: (count) => this.#noteRemade(count),
    });
  }

  #noteRemade(count: number): void {
    if (this.#keysRemade === 0)
      this.#terms.log.warn({ ...this.#named }, 'cluster-stores-promoted-keys-again');
    this.#keysRemade = count;
  }

  async #proved(): Promise<ProvedWorker | undefined> {
    const { key, registry, replica, addresses, channel } = this.#terms;
    const half = newSecretHalf();
    const manager: ManagerHello = {
      version: LINK_VERSION,
      managerKey: key.publicKey,
      nonce: newNonce(),
      replica,
      channel,
      half: half.publicKey,
    };
    const worker = WorkerHello.parse(await ask(this.#session, '/hello', manager));
    if (worker.version !== LINK_VERSION)
      return await this.#refuse('version', `uses version ${worker.version} of the link`);
    const isSigned = signatureCheck(worker.clusterKey);
    const transcript = transcriptOf('manager', manager, worker);
    const proof = WorkerProof.parse(
      await ask(this.#session, '/prove', { signature: key.sign(transcript) }),
    );
    if ('held' in proof) return undefined;
    const { signature, joinToken } = proof;
    if (!isSigned?.(transcriptOf('worker', manager, worker), signature))
      return await this.#refuse('unproved', 'does not have the key that it names');
    const signer = half.agree(worker.half, transcript);
    if (!signer) return await this.#refuse('unproved', 'sent an invalid public key');
    if (addresses.length > 0 && !addresses.some((each) => new URL(each).origin === worker.address))
      return await this.#refuse('address', 'used an address that is not in fleet.addresses');
    const { clusterID: clusterId, clusterKey: publicKey } = worker;
    const why = await registry.admit({ clusterId, publicKey, joinToken });
    if (why !== undefined) return await this.#refuse('not-joined', why, { left: true });
    if (!(await this.#terms.proved(clusterId, worker.start)))
      return await this.#refuse('runs-twice', 'runs twice, and the other one is linked', {
        copied: true,
      });
    this.#named = { clusterId, replica: worker.replica };
    // before the first request: the worker must not accept a key that was revoked while unlinked
    const { keys, templates } = this.#terms;
    this.#keys = this.#teller(KEY_WORDS, keys, transcript);
    if (this.#over) this.#keys.stop();
    await this.#keys.tellAll();
    return {
      worker: { clusterId, publicKey, replica: worker.replica },
      signer,
      tellerOfTemplates: () => this.#teller(TEMPLATE_WORDS, templates, transcript),
    };
  }

  /** GOAWAY cannot announce this: Node never ends streams that are open when it arrives. */
  async #untilItLeaves(): Promise<void> {
    await ask(this.#session, '/leave', {}).then(
      () => (this.#route = undefined),
      this.#cutUnlessSound,
    );
  }

  #cutUnlessSound = (error: unknown): void => {
    if (isOfOtherEnd(error)) this.cut('it sent an invalid message');
  };

  async #refuse(
    reason: RefusedReason,
    error: string,
    also: Omit<z.infer<typeof Refused>, 'error'> = {},
  ): Promise<never> {
    await ask(this.#session, '/refused', { error, ...also }).catch(() => undefined);
    throw new LinkRefused(reason, `the cluster ${error}`);
  }
}

interface RouteTerms extends Pick<ClusterRoute, 'clusterId' | 'linkId'> {
  readonly signer: Pick<LinkSecret, 'sign'>;
  readonly clock: Clock;
  readonly heartbeat: () => Heartbeat | undefined;
}

const routeOver = (
  session: ClientHttp2Session,
  { clusterId, linkId, signer, clock, heartbeat }: RouteTerms,
): ClusterRoute => ({
  clusterId,
  linkId,
  latencyMs: () => heartbeat()?.latencyMs ?? 0,
  dial: () => {
    if (session.closed || session.destroyed)
      throw clusterUnavailable(clusterId, 'is not connected; try again');
    const stream = session.request({ ':method': 'CONNECT', ':authority': clusterId });
    const connection = new TunnelSocket(stream, 'client');
    stream.once('response', (headers) => {
      if (headers[':status'] !== 200)
        connection.destroy(new Error('the worker accepts no more connections'));
    });
    return connection;
  },
  identify: identitySigner(signer, { clusterId, linkId, clock }),
  probe: (silent) => heartbeat()?.probe(silent) ?? (() => undefined),
});

/** Explained in docs/reference/metrics.md. */
const REASONS = [
  'not-joined',
  'unproved',
  'address',
  'version',
  'runs-twice',
  'not-opened',
] as const;
export type RefusedReason = (typeof REASONS)[number];

class LinkRefused extends Error {
  override readonly name = 'LinkRefused';
  readonly reason: RefusedReason;

  constructor(reason: RefusedReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export class RefusedLinks {
  readonly #counts = new Map<RefusedReason, number>(REASONS.map((reason) => [reason, 0]));

  /** `not-opened` for errors other than LinkRefused. */
  note(error: unknown): RefusedReason {
    const reason = error instanceof LinkRefused ? error.reason : 'not-opened';
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    return reason;
  }

  get counts(): ReadonlyMap<RefusedReason, number> {
    return this.#counts;
  }
}
