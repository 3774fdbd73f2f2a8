import { rmSync } from 'node:fs';
import { startRedis, type RedisServer } from '../../local-cluster/redis-server.ts';
import { aPodTemplate, Replicas } from '../../local-cluster/replicas.ts';
import { watchedFolder } from '../../local-cluster/watched-folder.ts';
import { version } from '../../src/daemon/process/version.ts';
import { aBuild, type Build } from '../support/harness/a-build.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { AlertWatch } from '../support/harness/prometheus/alert-watch.ts';
import { aReplicaLink, type ReplicaLink } from '../support/cluster/replica-link.ts';
import { PatientClient } from '../support/harness/patient-client.ts';
import { RollingPool } from '../support/harness/rolling-pool.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const POOL = 6;

/**
 * What is provoked here makes the rule's own expression hold, and hold no longer. For how long it
 * must is for promtool.
 */
describe('alerts on real replicas', function () {
  const controlPlane = onTheControlPlane();
  let folder: string | undefined;
  let redis: RedisServer;
  let links: readonly ReplicaLink[] = [];
  let replicas: Replicas;
  let client: HttpClient;
  let watch: AlertWatch;
  let next: Build | undefined;

  const metricsOf = async (replica: number): Promise<string> =>
    await (await fetch(replicas.replica(replica).metricsAddress)).text();
  const link = (replica: number): ReplicaLink => {
    const found = links[replica];
    if (!found) throw new Error(`replica ${replica} has no link`);
    return found;
  };
  /**
   * Claims by the first replica, whatever comes of it, and ends what it got; answers the status.
   */
  const claimed = async (): Promise<number> => {
    const { status, json } = await client.post('/sandboxes', { poolName: 'drilled' });
    const id = json.sandbox?.['sandboxId'];
    if (id !== undefined) await client.delete(`/sandboxes/${id}`);
    return status;
  };
  /**
   * Has work done well, as if an hour had passed since what was before, until none of these hold
   * any more.
   */
  const clearsWithWork = async (...alerts: readonly string[]): Promise<void> => {
    await eventually(
      async () => {
        await watch.anHourLater();
        if ((await claimed()) !== 201) return false;
        for (const alert of alerts) if (await watch.look(alert)) return false;
        return true;
      },
      `${alerts.join(', ')} clear`,
    );
  };
  /** Claims again and again until all of these hold. */
  const fireUnderWork = async (...alerts: readonly string[]): Promise<void> => {
    const missing = new Set(alerts);
    await eventually(
      async () => {
        await claimed();
        for (const alert of [...missing]) if (await watch.look(alert)) missing.delete(alert);
        return missing.size === 0;
      },
      `${alerts.join(', ')} fire`,
    );
  };

  before(async () => {
    const kubeconfigs = watchedFolder('links');
    folder = kubeconfigs;
    redis = await startRedis();
    links = await Promise.all(
      [0, 1].map((n) =>
        aReplicaLink(`replica-${n}`, { cluster: controlPlane(), redis, folder: kubeconfigs }),
      ),
    );
    replicas = await Replicas.start({
      cluster: controlPlane(),
      redis: redis.settings,
      count: 2,
      own: (n) => ({ env: link(n).env }),
    });
    const tenant = await replicas.tenant('amber', 'ann');
    await controlPlane().apply(aPodTemplate('drill-pod'));
    client = new HttpClient(replicas.replica(0).port, tenant);
    await untilAnswered(201, () =>
      client.post('/sandboxpools', { name: 'drilled', templateName: 'drill-pod', replicas: POOL }),
    );
    const patient = new PatientClient(replicas.replica(0).port, tenant);
    await new RollingPool(patient, 'drilled').until(
      'it is full',
      ({ idleReplicas }) => idleReplicas === POOL,
    );
    patient.close();
    watch = new AlertWatch({ a: () => metricsOf(0), b: () => metricsOf(1) });
    await watch.clears('SandpoolShardsWithoutLeader');
    await untilAnswered(201, async () => await client.post('/sandboxes', { poolName: 'drilled' }));
  });

  beforeEach(() => watch.anHourLater());

  after(async () => {
    client?.close();
    for (const { toApi } of links) Object.assign(toApi, { state: 'pass', delayMs: 0 });
    await replicas?.stop();
    await Promise.all(links.map((one) => one.stop()));
    await redis?.stop();
    next?.remove();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  it('SandpoolStoreFails, SandpoolClaimsFail, SandpoolRequestsFail, SandpoolShardsWithoutLeader: fire without Redis, and clear', async () => {
    const alerts = ['SandpoolStoreFails', 'SandpoolClaimsFail', 'SandpoolRequestsFail'];
    await clearsWithWork(...alerts, 'SandpoolShardsWithoutLeader');

    await redis.kill();
    try {
      await fireUnderWork(...alerts, 'SandpoolShardsWithoutLeader');
    } finally {
      await redis.restart();
    }
    await watch.clears('SandpoolShardsWithoutLeader', 120_000);
    await clearsWithWork(...alerts);
  });

  it('SandpoolStoreSlow and SandpoolClaimsSlow: fire while the API server is slow, and clear', async () => {
    await clearsWithWork('SandpoolStoreSlow', 'SandpoolClaimsSlow');

    link(0).toApi.delayMs = 700;
    try {
      await fireUnderWork('SandpoolStoreSlow', 'SandpoolClaimsSlow');
    } finally {
      link(0).toApi.delayMs = 0;
    }
    await clearsWithWork('SandpoolStoreSlow', 'SandpoolClaimsSlow');
  });

  it('SandpoolNotReady, SandpoolNoneReady and SandpoolMirrorStale: fire while replicas are cut off, and clear', async () => {
    for (const alert of ['SandpoolNotReady', 'SandpoolNoneReady', 'SandpoolMirrorStale'])
      await watch.clears(alert);

    try {
      link(1).toApi.state = 'hold';
      await watch.fires('SandpoolNotReady', 120_000);
      await watch.clears('SandpoolNoneReady'); // the other one serves
      link(0).toApi.state = 'hold';
      await watch.fires('SandpoolMirrorStale', 120_000);
      await watch.fires('SandpoolNoneReady', 120_000);
    } finally {
      for (const { toApi } of links) toApi.state = 'pass';
    }
    for (const alert of ['SandpoolNoneReady', 'SandpoolNotReady', 'SandpoolMirrorStale'])
      await watch.clears(alert, 120_000);
  });

  it('SandpoolVersionsDiffer: fires for an interrupted upgrade, and clears', async () => {
    next = aBuild({
      file: 'package.json',
      from: `"version": "${version()}"`,
      to: `"version": "${version()}-next"`,
    });
    await watch.clears('SandpoolVersionsDiffer');

    await replicas.replica(1).stop();
    await replicas.replica(1).start({ root: next.root });
    await watch.fires('SandpoolVersionsDiffer');

    await replicas.replica(0).stop();
    await replicas.replica(0).start({ root: next.root });
    await watch.clears('SandpoolVersionsDiffer');
  });
});
