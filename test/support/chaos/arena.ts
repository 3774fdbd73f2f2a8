import { readFileSync, rmSync } from 'node:fs';
import { ControlPlane } from '../../../local-cluster/control-plane.ts';
import type { FaultProxy } from '../harness/fault-proxy.ts';
import { compatibleClient, HttpClient } from '../harness/http-client.ts';
import { readPidFile } from '../../../src/daemon/process/pid-file.ts';
import { aReplicaLink, type ReplicaLink } from '../cluster/replica-link.ts';
import { startRedis, type RedisServer } from '../../../local-cluster/redis-server.ts';
import { aPodTemplate, type Replica, Replicas } from '../../../local-cluster/replicas.ts';
import { watchedFolder } from '../../../local-cluster/watched-folder.ts';
import { FakeClock } from './faults/clock-jump.ts';
import { POOL_TEMPLATE, type Reached } from './recorder.ts';

const NODES = 5;
/** Not a user's name. */
const ADMIN = '';
const NOWHERE = 'http://127.0.0.1:1';
/** Has a session at the console instead of a key. */
export const OPERATOR = 'operator';

export interface ArenaOptions {
  readonly quota: number;
  readonly replicaQuota: number;
  readonly replicas: number;
  readonly gated: { readonly team: string; readonly grantMs: number };
}

export interface Contender extends Reached {
  readonly replica: Replica;
  readonly toApi: FaultProxy;
  readonly toRedis: FaultProxy;
  readonly clock: FakeClock;
}

export class Arena {
  readonly controlPlane: ControlPlane;
  readonly redis: RedisServer;
  readonly replicas: Replicas;
  readonly contenders: readonly Contender[];
  /** By `namespace/team/user`. */
  readonly #keys = new Map<string, string>();
  /** By replica, then by user. */
  readonly #clients: Map<string, HttpClient>[] = [];
  readonly #folder: string;

  private constructor(parts: {
    readonly controlPlane: ControlPlane;
    readonly redis: RedisServer;
    readonly replicas: Replicas;
    readonly links: readonly Link[];
    readonly folder: string;
    readonly gated: string;
  }) {
    [this.controlPlane, this.redis, this.replicas, this.#folder] = [
      parts.controlPlane,
      parts.redis,
      parts.replicas,
      parts.folder,
    ];
    this.contenders = parts.links.map((link, n) => {
      const replica = parts.replicas.replica(n);
      const clients = new Map<string, HttpClient>();
      this.#clients.push(clients);
      const client = (user: string): HttpClient => {
        const key =
          user === OPERATOR ? undefined : (this.#keys.get(user) ?? parts.replicas.adminKey);
        const known = clients.get(user) ?? new HttpClient(replica.port, key);
        clients.set(user, known);
        return known;
      };
      return { replica, client, compatible: this.#compatibleOf(replica, parts.gated), ...link };
    });
  }

  static async start({
    quota,
    replicaQuota,
    replicas: count,
    gated,
  }: ArenaOptions): Promise<Arena> {
    const undo: (() => Promise<unknown> | void)[] = [];
    try {
      const folder = watchedFolder('arena');
      undo.push(() => {
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      });
      const redis = await startRedis();
      undo.push(() => redis.stop());
      const controlPlane = await ControlPlane.start({ nodes: NODES, legible: true });
      undo.push(() => controlPlane.stop());
      const links = await Promise.all(
        Array.from({ length: count }, (_, n) =>
          linkOf(n, { controlPlane, redis, folder, isSeen: n === count - 1 }),
        ),
      );
      undo.push(() => Promise.all(links.map(endLink)));
      const replicas = await Replicas.start({
        cluster: controlPlane,
        redis: redis.settings,
        count,
        env: {
          SANDPOOL_QUOTAS_SANDBOXES: String(quota),
          SANDPOOL_QUOTAS_REPLICAS: String(replicaQuota),
          SANDPOOL_POOL_REPLICA_SEMANTICS: 'total',
          SANDPOOL_LOG_LEVEL: 'debug',
          SANDPOOL_COMPATIBLE_API_LISTEN: '127.0.0.1:0',
          SANDPOOL_COMPATIBLE_API_WAIT: '0s',
          SANDPOOL_APPROVALS_RULES: `require team=${gated.team} operation=claimSandbox|deleteSandbox`,
          SANDPOOL_APPROVALS_PENDING_FOR: `${gated.grantMs / 1_000}s`,
          SANDPOOL_APPROVALS_GRANT_FOR: `${gated.grantMs / 1_000}s`,
        },
        own: (n) => ({ env: links[n]?.env ?? {} }),
      });
      return new Arena({ controlPlane, redis, replicas, links, folder, gated: gated.team });
    } catch (error) {
      for (const step of undo.toReversed()) await step();
      throw error;
    }
  }

  /** Returns the user's name in records. */
  async user(team: string, user: string): Promise<string> {
    const name = `${this.replicas.namespaceOf(team)}/${team}/${user}`;
    this.#keys.set(name, await this.replicas.tenant(team, user));
    for (const clients of this.#clients) {
      clients.get(name)?.close();
      clients.delete(name); // they have the old key
    }
    return name;
  }

  /** The port for E2B's SDKs changes at each start. */
  #compatibleOf(replica: Replica, gated: string): (user: string) => HttpClient | undefined {
    const clients = new Map<string, HttpClient>();
    return (user) => {
      const key = this.#keys.get(user);
      if (key === undefined || user.split('/')[1] === gated) return undefined;
      const address = readPidFile(replica.dataDir)?.compatibleAddress ?? NOWHERE;
      const name = `${address} ${key}`;
      const known = clients.get(name) ?? compatibleClient(Number(new URL(address).port), key);
      clients.set(name, known);
      return known;
    };
  }

  admin(replica: number): HttpClient {
    const contender = this.contenders[replica];
    if (!contender) throw new Error(`there is no replica ${replica}`);
    return contender.client(ADMIN);
  }

  /** Sandboxes end after half an hour without activity. */
  async template(): Promise<void> {
    await this.controlPlane.apply(aPodTemplate(POOL_TEMPLATE, { idleTimeout: '30m' }));
  }

  async stop(): Promise<void> {
    for (const { toApi, toRedis } of this.contenders)
      for (const proxy of [toApi, toRedis])
        Object.assign(proxy, { state: 'pass', delayMs: 0, lag: undefined });
    await this.replicas.stop();
    await Promise.all(this.contenders.map(endLink));
    this.redis.signal('SIGCONT');
    await this.redis.stop();
    await this.controlPlane.stop();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface Link extends Pick<Contender, 'toApi' | 'toRedis' | 'clock'>, Pick<ReplicaLink, 'env'> {}

interface LinkTerms {
  readonly controlPlane: ControlPlane;
  readonly redis: RedisServer;
  readonly folder: string;
  /**
   * Sees API traffic, so that one watch can be late. That costs as much as TLS, so only one replica
   * has it.
   */
  readonly isSeen: boolean;
}

const linkOf = async (
  n: number,
  { controlPlane, redis, folder, isSeen }: LinkTerms,
): Promise<Link> => {
  const { certFile, keyFile } = controlPlane.serving;
  const tls = {
    cert: readFileSync(certFile, 'utf8'),
    key: readFileSync(keyFile, 'utf8'),
    ca: controlPlane.caPem,
  };
  const link = await aReplicaLink(`replica-${n}`, {
    cluster: controlPlane,
    redis,
    folder,
    tls: isSeen ? tls : undefined,
  });
  const clock = new FakeClock();
  return { ...link, clock, env: { ...link.env, ...clock.env } };
};

const endLink = async ({
  toApi,
  toRedis,
  clock,
}: Pick<Contender, 'toApi' | 'toRedis' | 'clock'>): Promise<void> => {
  await Promise.all([toApi.stop(), toRedis.stop()]);
  clock.remove();
};
