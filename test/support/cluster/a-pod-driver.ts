import { apiServer } from '../../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../../src/k8s/api/api-calls.ts';
import { readAgents } from '../../../src/k8s/sandboxes/pods/agent-programs.ts';
import { BoundVolumes } from '../../../src/k8s/sandboxes/bound-volumes.ts';
import { readClusterAccess } from '../../../src/k8s/api/cluster-access.ts';
import { PodStreams } from '../../../src/k8s/streams/pod-streams.ts';
import { KubernetesSandboxDriver } from '../../../src/k8s/sandboxes/sandbox-driver.ts';
import { ServerClock } from '../../../src/k8s/api/server-clock.ts';
import type { LaunchOrder, InstanceRecord } from '../../../src/model/sandbox.ts';
import type {
  ContainerDefinition,
  InstanceDefinition,
} from '../../../src/model/templates/template.ts';
import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { installCustomResources } from '../../../local-cluster/custom-resources.ts';
import { FactLog } from '../harness/fact-log.ts';
import { aClaim, aDefinition, anOrder, permitted } from '../builders/instance-orders.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { testSeals } from '../builders/test-seals.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

export interface PodDriverTerms {
  readonly graceSeconds?: number;
  /** Lead of its clock over the API server's. */
  readonly aheadMs?: number;
}

export interface PodOrderPart {
  readonly container?: Partial<ContainerDefinition>;
  readonly definition?: Partial<InstanceDefinition>;
}

/** A replica's driver with the daemon's rights, in an existing namespace. */
export class PodDriver {
  readonly driver: KubernetesSandboxDriver;
  readonly log = new FactLog();
  readonly namespace: string;
  readonly #api: ApiServer;

  private constructor(parts: {
    readonly driver: KubernetesSandboxDriver;
    readonly api: ApiServer;
    readonly namespace: string;
  }) {
    this.driver = parts.driver;
    this.#api = parts.api;
    this.namespace = parts.namespace;
  }

  /** Watches nothing yet. */
  static async make(
    cluster: Cluster,
    namespace: string,
    { graceSeconds = 0, aheadMs = 0 }: PodDriverTerms = {},
  ): Promise<PodDriver> {
    const access = await readClusterAccess(
      { kubeconfig: cluster.kubeconfig('sandpool') },
      quietLog,
    );
    const serverClock = new ServerClock();
    const api = apiServer({ metrics: silentMetrics, access, version: 'test', clock: serverClock });
    const clock = {
      now: () => serverClock.now() + aheadMs,
      at: (moment: number, due: () => void) => serverClock.at(moment - aheadMs, due),
    };
    const streams = new PodStreams({
      access,
      api: api.lane('claims'),
      log: quietLog,
      version: 'test',
    });
    const driver = new KubernetesSandboxDriver({
      metrics: silentMetrics,
      api,
      streams,
      volumes: new BoundVolumes({ api: api.lane('background'), clock, provided: true }),
      pods: {
        runAsUser: 65_532,
        terminationGraceSeconds: graceSeconds,
        agents: readAgents(),
      },
      clock,
      log: quietLog,
      outdated: () => undefined,
      seals: testSeals,
      teamOf: (name) => name,
    });
    return new PodDriver({ driver, api, namespace });
  }

  static async watching(...terms: Parameters<typeof PodDriver.make>): Promise<PodDriver> {
    const made = await PodDriver.make(...terms);
    await made.driver.watch(made.log.report);
    return made;
  }

  /** In its own namespace, watching. */
  static async alone(cluster: Cluster): Promise<PodDriver> {
    await installCustomResources(cluster);
    return await PodDriver.watching(cluster, await cluster.namespace());
  }

  /** kwok's behaviour depends on the image. */
  order(image = 'busybox', { container, definition }: PodOrderPart = {}): LaunchOrder {
    return podOrder(this.namespace, image, { container, definition });
  }

  async launched(order = this.order()): Promise<InstanceRecord> {
    const record = await this.driver.launch(order, permitted);
    await this.log.when(record.id, 'available');
    return record;
  }

  async claimed(order = this.order()): Promise<InstanceRecord> {
    const record = await this.launched(order);
    return await this.driver.claim(record, aClaim({ owner: record.poolOwner }));
  }

  async close(): Promise<void> {
    await this.driver.stop();
    await this.#api.close();
  }
}

export const podOrder = (
  namespace: string,
  image: string,
  { container, definition }: PodOrderPart = {},
): LaunchOrder => {
  const { record, definition: rendered } = anOrder(
    aDefinition({ ...container, image }, definition),
  );
  return {
    record: {
      ...record,
      poolOwner: { ...record.poolOwner, namespace },
      containerImages: { main: image },
    },
    definition: rendered,
  };
};
