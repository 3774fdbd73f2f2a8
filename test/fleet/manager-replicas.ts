import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createTcp, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { silentLog } from '../../src/contracts/log.ts';
import { sqliteRecordStore } from '../../src/embedded/store/record-store.ts';
import { ClusterStartStore } from '../../src/embedded/coordination/cluster-start-store.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { ClusterRegistry } from '../../src/fleet/link/cluster-registry.ts';
import { newFleetKey } from '../../src/fleet/link/fleet-keys.ts';
import { ManagerLinks } from '../../src/fleet/link/manager-links.ts';
import type { IdentityCheck } from '../../src/fleet/link/worker-link.ts';
import { WorkerLinks } from '../../src/fleet/link/worker-links.ts';
import { aDatabase } from '../embedded/store/a-database.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { eventually } from '../support/harness/eventually.ts';
import { credentialsIn, noCopies, noKeys, noTemplateCopies, noTemplates } from './a-fleet.ts';

export interface ManagerReplica {
  readonly name: string;
  readonly registry: ClusterRegistry;
  readonly links: ManagerLinks;
  readonly server: Server;
}

interface WorkerTerms {
  readonly clusterId: string;
  readonly serve?: (connection: Duplex, check: IdentityCheck) => void;
  readonly joinToken?: string;
  readonly replica?: string;
  /** Where its store is one machine's. */
  readonly start?: string;
  /** Of a worker that has joined before, or of several replicas of one. */
  readonly folder?: string;
}

/** Replicas of one manager over one store, behind one address that leads to each in turn. */
export class ManagerReplicas {
  readonly #balancer = createTcp((client) => this.#pass(client));
  readonly #sockets = new Set<Socket>();
  readonly #key = newFleetKey();
  readonly #closing: (() => Promise<void> | void)[] = [];
  readonly #records: ReturnType<typeof sqliteRecordStore>;
  readonly #starts = new ClusterStartStore(systemClock());
  #turn = 0;
  list: readonly ManagerReplica[] = [];

  private constructor(records: ReturnType<typeof sqliteRecordStore>) {
    this.#records = records;
  }

  static async start(count: number): Promise<ManagerReplicas> {
    const { database, close } = await aDatabase();
    const made = new ManagerReplicas(sqliteRecordStore(database, quietLog));
    made.#balancer.listen(0, '127.0.0.1');
    await once(made.#balancer, 'listening');
    for (let n = 0; n < count; n += 1) await made.add(`hub-${n}`);
    made.#closing.push(close);
    return made;
  }

  get clusters() {
    return this.#records.clusters;
  }

  get first(): ManagerReplica {
    const [first] = this.list;
    if (!first) throw new Error('there are replicas');
    return first;
  }

  async add(name: string): Promise<void> {
    const registry = new ClusterRegistry({
      clusters: this.#records.clusters,
      clock: systemClock(),
      ownClusterId: 'hub',
      managerKey: this.#key.publicKey,
    });
    await registry.start();
    const links = new ManagerLinks({
      registry,
      key: this.#key,
      clock: systemClock(),
      log: quietLog,
      keys: noKeys,
      templates: noTemplates,
      replica: name,
      coordination: {
        ...this.#starts.of(name),
        replicas: () => this.list.map((each) => each.name),
      },
      addresses: [],
      addressOf: () => '',
    });
    const server = createServer();
    server.on('upgrade', (request, socket, head) => links.upgrade(request, socket, head));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.list = [...this.list, { name, registry, links, server }];
    links.start();
  }

  /** Ends one as a rollout does. */
  async remove(replica: ManagerReplica): Promise<void> {
    this.list = this.list.filter((each) => each !== replica);
    replica.links.stop();
    replica.server.closeAllConnections();
    await new Promise((resolve) => void replica.server.close(resolve));
  }

  worker({ clusterId, serve, joinToken, replica, start, folder }: WorkerTerms) {
    const kept = folder ?? mkdtempSync(join(tmpdir(), 'sandpool-worker-'));
    const told: string[] = [];
    const links = new WorkerLinks({
      clusterId,
      replica: replica ?? `${clusterId}-0`,
      start,
      managers: [`ws://127.0.0.1:${(this.#balancer.address() as AddressInfo).port}`],
      credentials: credentialsIn(kept, joinToken),
      clock: systemClock(),
      log: { ...silentLog, warn: ({ why }) => void told.push(String(why)) },
      keys: noCopies,
      templates: noTemplateCopies,
      serve: serve ?? ((connection) => void connection.destroy()),
    });
    links.start();
    this.#closing.unshift(() => {
      links.stop();
      rmSync(kept, { recursive: true, force: true, maxRetries: 5 });
    });
    return { links, folder: kept, told };
  }

  /** Resolves once each replica has a link to the cluster. */
  linkedEverywhere(clusterId: string): Promise<void> {
    return eventually(
      () => this.list.every(({ links }) => links.find(clusterId) !== undefined),
      `${clusterId} is linked to each replica`,
    );
  }

  async stop(): Promise<void> {
    for (const replica of this.list) await this.remove(replica);
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => void this.#balancer.close(resolve));
    for (const close of this.#closing) await close();
  }

  #pass(client: Socket): void {
    const replica = this.list[(this.#turn += 1) % this.list.length];
    const { port } = (replica?.server.address() ?? { port: 1 }) as AddressInfo;
    const server = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.once('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }
}
