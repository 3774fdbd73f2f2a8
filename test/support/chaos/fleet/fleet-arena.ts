import { commandDaemon } from '../../../../src/cli/common/control.ts';
import { ControlPlane } from '../../../../local-cluster/control-plane.ts';
import { startRedis } from '../../../../local-cluster/redis-server.ts';
import { aPodTemplate, Replicas } from '../../../../local-cluster/replicas.ts';
import { eventually } from '../../harness/eventually.ts';
import { HttpClient } from '../../harness/http-client.ts';
import { untilAnswered } from '../../harness/until-answered.ts';
import { FakeClock } from '../faults/clock-jump.ts';
import { POOL_TEMPLATE, type Reached } from '../recorder.ts';
import { anEmbeddedWorker, aWorkerOnACluster, type FleetWorker } from './workers.ts';

const PREFIX = 'test-fleet-';
const HOUR_S = 3_600;
const MANAGERS = 3;
export const WORK = 'work';
export const ENV = 'dev';
export const memberOf = (clusterId: string): string => `${ENV}-${clusterId}`;

/** Those of the manager and a worker on Kubernetes, which may still start. */
export interface Grounds {
  readonly manager: ControlPlane;
  readonly worker?: Promise<ControlPlane>;
}

interface FleetArenaTerms {
  readonly poolReplicas: number;
  readonly memberReplicas: number;
  readonly grounds: Grounds;
}

export interface ManagerReplica extends Reached {
  readonly replica: Replicas['list'][number];
  readonly clock: FakeClock;
}

/**
 * Three replicas of a manager, two workers on this machine with clocks an hour ahead and behind,
 * and perhaps a worker on Kubernetes.
 */
export class FleetArena {
  readonly managers: readonly ManagerReplica[];
  readonly workers: readonly FleetWorker[];
  readonly memberReplicas: number;
  readonly #replicas: Replicas;
  readonly #undo: readonly (() => Promise<unknown> | void)[];

  private constructor(
    replicas: Replicas,
    clocks: readonly FakeClock[],
    parts: {
      readonly workers: readonly FleetWorker[];
      readonly undo: readonly (() => Promise<unknown> | void)[];
      readonly memberReplicas: number;
    },
  ) {
    [this.#replicas, this.workers, this.#undo] = [replicas, parts.workers, parts.undo];
    this.memberReplicas = parts.memberReplicas;
    this.managers = replicas.list.map((replica, n) => {
      const client = new HttpClient(replica.port, replicas.adminKey);
      return { replica, clock: clocks[n]!, client: () => client };
    });
  }

  static async start(terms: FleetArenaTerms): Promise<FleetArena> {
    const undo: (() => Promise<unknown> | void)[] = [];
    try {
      const { manager, worker } = terms.grounds;
      const redis = await startRedis();
      undo.push(() => redis.stop());
      const clocks = Array.from({ length: MANAGERS }, () => new FakeClock());
      undo.push(() => clocks.forEach((clock) => clock.remove()));
      const replicas = await Replicas.start({
        cluster: manager,
        redis: redis.settings,
        count: MANAGERS,
        namespacePrefix: PREFIX,
        env: { SANDPOOL_ROLE: 'manager', SANDPOOL_CLUSTER_ID: 'hub' },
        own: (n) => ({ env: clocks[n]?.env ?? {} }),
      });
      undo.push(() => replicas.stop());
      await manager.apply(aPodTemplate(POOL_TEMPLATE));
      const termsOf = async (clusterId: string, offsetSeconds: number) => ({
        ...{ clusterId, offsetSeconds, managers: replicas },
        token: await joinTokenOf(replicas, clusterId),
      });
      const begun = await Promise.allSettled([
        termsOf('w1', HOUR_S).then(anEmbeddedWorker),
        termsOf('w2', -HOUR_S).then(anEmbeddedWorker),
        ...(worker
          ? [
              Promise.all([termsOf('w3', 0), worker]).then(([own, cluster]) =>
                aWorkerOnACluster({ ...own, cluster }),
              ),
            ]
          : []),
      ]);
      const workers = begun.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      undo.push(() => Promise.all(workers.map((each) => each.stop())));
      for (const each of begun) if (each.status === 'rejected') throw each.reason as Error;
      const arena = new FleetArena(replicas, clocks, {
        ...{ workers, undo, memberReplicas: terms.memberReplicas },
      });
      await arena.untilLinked();
      await arena.#makePools(terms);
      return arena;
    } catch (error) {
      for (const step of undo.toReversed()) await step();
      throw error;
    }
  }

  /** Links of all replicas to all workers. */
  async untilLinked(): Promise<void> {
    await eventually(async () => {
      const lists = await Promise.all(
        this.managers.map(({ client }) =>
          client('')
            .get('/clusters')
            .catch(() => undefined),
        ),
      );
      return lists.every(
        (answer) =>
          answer?.json.items?.filter(
            (each) => each['isLocal'] !== true && each['status'] === 'Connected',
          ).length === this.workers.length,
      );
    }, 'each replica of the manager is linked to each worker');
  }

  async stop(): Promise<void> {
    for (const { ways } of this.workers)
      for (const way of ways) Object.assign(way, { state: 'pass', delayMs: 0 });
    for (const step of this.#undo.toReversed()) await step();
  }

  async #makePools({ poolReplicas, memberReplicas }: FleetArenaTerms): Promise<void> {
    const client = new HttpClient(this.#replicas.replica(0).port, this.#replicas.adminKey);
    const made = async (path: string, body: object, at = client): Promise<void> => {
      await untilAnswered(201, () => at.post(path, body));
    };
    await made('/envs', { name: ENV, templateRef: { name: POOL_TEMPLATE } });
    for (const { clusterId, client: clientOf } of this.workers) {
      const pool = { name: WORK, templateName: POOL_TEMPLATE, replicas: poolReplicas };
      await made('/sandboxpools', pool, clientOf());
      await made(`/envs/${ENV}/sandboxpools`, {
        ...{ name: memberOf(clusterId), clusterID: clusterId, replicas: memberReplicas },
        maxReplicas: memberReplicas,
      });
    }
    await eventually(async () => {
      const answer = await client.get(`/envs/${ENV}`);
      return answer.text.split('"state":"Active"').length - 1 >= this.workers.length;
    }, 'each member of the env is there');
    client.close();
  }
}

const joinTokenOf = async (replicas: Replicas, clusterID: string): Promise<string> => {
  const { dataDir } = replicas.replica(0);
  const { token } = await commandDaemon(dataDir, '/clusters/join-token', { clusterID });
  return String(token);
};
