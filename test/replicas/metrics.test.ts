import { expect } from 'chai';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { eventually } from '../support/harness/eventually.ts';
import { seriesOf, type Exposition } from '../support/harness/exposition.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { PatientClient } from '../support/harness/patient-client.ts';
import { RollingPool } from '../support/harness/rolling-pool.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

describe('metrics of replicas', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let tenant: string;
  let claimedBefore: number;

  const told = async (replica: number): Promise<Exposition> =>
    seriesOf(await (await fetch(replicas().replica(replica).metricsAddress)).text());
  /** By this replica. */
  const claimed = async (replica: number): Promise<number> =>
    (await told(replica)).value('sandpool_claims_total', { result: 'claimed' }) ?? 0;
  const ledBy = async (...which: readonly number[]): Promise<number> => {
    let led = 0;
    for (const replica of which) led += (await told(replica)).value('sandpool_shards_led') ?? 0;
    return led;
  };

  before(async () => {
    tenant = await replicas().tenant('amber', 'ann');
    await controlPlane().apply(aPodTemplate('metrics-pod'));
    const client = new PatientClient(replicas().replica(0).port, tenant);
    await untilAnswered(201, () =>
      client.post('/sandboxpools', { name: 'measured', templateName: 'metrics-pod', replicas: 2 }),
    );
    await new RollingPool(client, 'measured').until(
      'it is full',
      ({ idleReplicas }) => idleReplicas === 2,
    );
    claimedBefore = await claimed(0);
    await untilAnswered(201, () => client.post('/sandboxes', { poolName: 'measured' }));
    client.close();
  });

  it('show the API server by kind of object, the scripts of Redis, and every mirror', async () => {
    const series = await told(0);

    expect(await claimed(0)).to.equal(claimedBefore + 1);
    expect(
      series.value('sandpool_store_seconds_count', {
        store: 'api-server',
        operation: 'PUT sandboxes',
      }),
    ).to.be.above(0);
    expect(series.value('sandpool_store_seconds_count', { store: 'redis' })).to.be.above(0);
    expect(
      series.named('sandpool_mirror_silence_seconds').map(({ labels }) => labels['mirror']),
    ).to.have.members([
      'apikeys',
      'approvals',
      'nodes',
      'pods',
      'sandboxenvs',
      'sandboxes',
      'sandboxpools',
      'sandboxtemplates',
      'userquotas',
    ]);
  });

  it('show a pool identically on each replica, with the namespace of its owner', async () => {
    for (const replica of [0, 1, 2]) {
      await eventually(
        async () =>
          (await told(replica)).value('sandpool_pool_instances', {
            pool_namespace: replicas().namespaceOf('amber'),
            pool: 'measured',
            state: 'running',
          }) === 1,
        'it runs there',
      );
    }
  });

  it('show that every shard has a leader again after a replica has died', async () => {
    await eventually(async () => (await ledBy(0, 1, 2)) === 16, 'all are led');

    await replicas().replica(2).kill();

    await eventually(async () => (await ledBy(0, 1)) === 16, 'the others lead all');
    await replicas().replica(2).start();
    await eventually(async () => (await ledBy(0, 1, 2)) === 16, 'all are led');
  });
});
