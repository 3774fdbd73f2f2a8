import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../src/contracts/clock.ts';
import type { Log } from '../../src/contracts/log.ts';
import type { Records } from '../../src/contracts/record-store.ts';
import { ClusterStartStore } from '../../src/embedded/coordination/cluster-start-store.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { sqliteRecordStore } from '../../src/embedded/store/record-store.ts';
import type {
  PromotedKeyCopies,
  PromotedKeySource,
} from '../../src/contracts/fleet/promoted-keys.ts';
import type {
  GlobalTemplateCopies,
  GlobalTemplateSource,
} from '../../src/contracts/fleet/global-templates.ts';
import { ClusterRegistry } from '../../src/fleet/link/cluster-registry.ts';
import { newFleetKey, type FleetKey } from '../../src/fleet/link/fleet-keys.ts';
import { ManagerLinks } from '../../src/fleet/link/manager-links.ts';
import type { ClusterRecord } from '../../src/model/fleet/cluster.ts';
import { WorkerCredentials } from '../../src/fleet/link/worker-credentials.ts';
import type { IdentityCheck } from '../../src/fleet/link/worker-link.ts';
import { WorkerLinks } from '../../src/fleet/link/worker-links.ts';
import { silentLog } from '../../src/contracts/log.ts';
import { aDatabase } from '../embedded/store/a-database.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { eventually } from '../support/harness/eventually.ts';

export const noCopies: PromotedKeyCopies = {
  leadsTo: () => undefined,
  begin: () => ({
    take: async () => undefined,
    caughtUp: async () => undefined,
    left: async () => undefined,
    end: () => undefined,
  }),
};
export const noKeys: PromotedKeySource = {
  list: async () => [],
  find: () => undefined,
  follow: () => () => undefined,
};
export const noTemplates: GlobalTemplateSource = {
  list: async () => [],
  find: () => undefined,
  follow: () => () => undefined,
};
export const noTemplateCopies: GlobalTemplateCopies = {
  leadsTo: () => undefined,
  begin: () => ({
    take: async () => undefined,
    caughtUp: async () => undefined,
    left: async () => undefined,
    end: () => undefined,
  }),
  report: async () => ({ state: 'Absent', pools: [] }),
};

/** What a worker with this data folder is known by; with a token that it may join with. */
export const credentialsIn = (dataDir: string, joinToken?: string): WorkerCredentials => {
  const joinTokenFile = joinToken === undefined ? undefined : join(dataDir, 'join.token');
  if (joinTokenFile !== undefined) writeFileSync(joinTokenFile, `${joinToken}\n`);
  return new WorkerCredentials({ dataDir, joinTokenFile });
};

type Serve = (connection: Duplex, check: IdentityCheck) => void;

export interface JoinTerms {
  readonly clusterId: string;
  readonly serve: Serve;
  readonly joinToken?: string;
  /** Of a worker that has joined before. */
  readonly folder?: string;
  /** In place of the manager's own address. */
  readonly manager?: string;
  /** Addresses besides that one. */
  readonly others?: readonly string[];
  readonly keys?: PromotedKeyCopies;
  readonly templates?: GlobalTemplateCopies;
}

export interface TestWorker {
  readonly folder: string;
  readonly links: WorkerLinks;
  /** Why it has no link, each time that it was told. */
  readonly told: string[];
}

/**
 * The links of a manager, on a listener of its own and with real records, and workers that join it.
 * All of it goes with `stop`.
 */
export class FleetUnderTest {
  readonly registry: ClusterRegistry;
  /** What the registry writes to. */
  readonly store: Records<ClusterRecord>;
  links: ManagerLinks;
  readonly #linksWith: (keys: PromotedKeySource) => ManagerLinks;
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #workers: TestWorker[] = [];
  readonly #closing: (() => Promise<void> | void)[];

  private constructor(given: {
    registry: ClusterRegistry;
    store: Records<ClusterRecord>;
    linksWith: (keys: PromotedKeySource) => ManagerLinks;
    keys: PromotedKeySource;
    server: Server;
    clock: Clock;
    close: () => Promise<void>;
  }) {
    this.registry = given.registry;
    this.store = given.store;
    this.#linksWith = given.linksWith;
    this.links = given.linksWith(given.keys);
    this.#server = given.server;
    this.#server.on('upgrade', (request, socket, head) => {
      if (this.links.takes(request)) this.links.upgrade(request, socket, head);
      else socket.destroy();
    });
    this.#clock = given.clock;
    this.#closing = [given.close];
  }

  static async start({
    clock = systemClock(),
    key = newFleetKey(),
    keys = noKeys,
    templates = noTemplates,
    addresses = [],
    replicas = () => ['hub-0'],
    log = quietLog,
  }: {
    clock?: Clock;
    key?: FleetKey;
    keys?: PromotedKeySource;
    templates?: GlobalTemplateSource;
    addresses?: readonly string[];
    /** Those of the manager, of which this is one. */
    replicas?: () => readonly string[];
    /** The manager's. */
    log?: Log;
  } = {}): Promise<FleetUnderTest> {
    const { database, close } = await aDatabase();
    const store = sqliteRecordStore(database, quietLog).clusters;
    const registry = new ClusterRegistry({
      clusters: store,
      clock,
      ownClusterId: 'hub',
      managerKey: key.publicKey,
    });
    await registry.start();
    const linksWith = (source: PromotedKeySource): ManagerLinks => {
      const links = new ManagerLinks({
        registry,
        key,
        clock,
        log,
        keys: source,
        templates,
        replica: 'hub-0',
        coordination: { ...new ClusterStartStore(clock).of('hub-0'), replicas },
        addresses,
        addressOf: ({ socket }) => socket.remoteAddress ?? '',
      });
      links.start();
      return links;
    };
    const server = createServer((_request, response) => response.writeHead(404).end());
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    return new FleetUnderTest({ registry, store, linksWith, keys, server, clock, close });
  }

  /** As where the manager was killed and started again: links are cut, and open anew. */
  restart(keys: PromotedKeySource): void {
    this.links.stop();
    this.links = this.#linksWith(keys);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Starts a worker, which may be refused. */
  worker({
    clusterId,
    serve,
    joinToken,
    folder,
    keys = noCopies,
    templates = noTemplateCopies,
    ...to
  }: JoinTerms): TestWorker {
    const kept = folder ?? mkdtempSync(join(tmpdir(), 'sandpool-worker-'));
    const told: string[] = [];
    const log: Log = {
      ...silentLog,
      warn: ({ why }) => {
        told.push(String(why));
      },
    };
    const links = new WorkerLinks({
      clusterId,
      replica: `${clusterId}-0`,
      managers: [to.manager ?? `ws://127.0.0.1:${this.port}`, ...(to.others ?? [])],
      credentials: credentialsIn(kept, joinToken),
      clock: this.#clock,
      log,
      keys,
      templates,
      serve,
    });
    const worker = { folder: kept, links, told };
    this.#workers.push(worker);
    links.start();
    return worker;
  }

  /** Starts a worker with a token of its own, and resolves once it is linked. */
  async join(terms: Omit<JoinTerms, 'joinToken'>): Promise<TestWorker> {
    const { token } = await this.registry.invite(terms.clusterId);
    const worker = this.worker({ ...terms, joinToken: token });
    await this.linked(terms.clusterId);
    return worker;
  }

  linked(clusterId: string): Promise<void> {
    return eventually(() => this.links.find(clusterId) !== undefined, `${clusterId} is linked`);
  }

  async stop(): Promise<void> {
    for (const { links, folder } of this.#workers) {
      links.stop();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    }
    this.links.stop();
    this.#server.closeAllConnections();
    await new Promise((resolve) => void this.#server.close(resolve));
    for (const close of this.#closing) await close();
  }
}
