import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandDaemon } from '../../src/cli/control.ts';
import { Balancer } from '../../local-cluster/balancer.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { claim, run, stocked } from '../support/harness/on-a-daemon.ts';

const PATIENCE_MS = 60_000;
const PREFIX = 'test-fleet-';

describe('a manager of three replicas on a cluster', function () {
  this.timeout(180_000);
  const replicas = onReplicas(onTheControlPlane(), {
    namespacePrefix: PREFIX,
    env: { SANDPOOL_ROLE: 'manager', SANDPOOL_CLUSTER_ID: 'hub' },
  });
  let balancer: Balancer;
  let worker: DaemonUnderTest;

  before(async () => {
    balancer = new Balancer(replicas().list.map(({ port }) => port));
    await balancer.start();
    const manager = replicas().replica(0);
    const { token } = await commandDaemon(manager.dataDir, '/clusters/join-token', {
      clusterID: 'w1',
    });
    const file = join(manager.dataDir, 'join.token');
    writeFileSync(file, String(token), { mode: 0o600 });
    worker = await DaemonUnderTest.start([
      ...['--cluster-id', 'w1', '--namespace-pattern', `${PREFIX}{team}`],
      ...['--fleet-managers', `ws://127.0.0.1:${balancer.port}`, '--fleet-join-token-file', file],
      ...['--default-pool-replicas', '2'],
    ]);
  });
  after(async () => {
    await worker?.dispose();
    await balancer?.stop();
  });

  const clients = (): readonly HttpClient[] =>
    replicas().list.map(({ port }) => new HttpClient(port, replicas().adminKey));
  const connected = async (client: HttpClient): Promise<boolean> =>
    (await client.get('/clusters')).json.items?.some(
      (each) => each['clusterID'] === 'w1' && each['status'] === 'Connected',
    ) === true;
  const linkedToAll = (): Promise<void> =>
    eventually(
      async () => (await Promise.all(clients().map(connected))).every(Boolean),
      'each replica has a link',
      PATIENCE_MS,
    );

  it('serves a worker that knows one address, at any of them', async () => {
    await linkedToAll();
    for (const client of clients()) {
      await stocked(client, 2, 'w1::default');
      const id = await claim(client, 'w1::default');
      expect((await run(client, id, 'echo here')).stdout).to.equal('here\n');
      for (const other of clients())
        expect((await other.get(`/sandboxes/${id}`)).json.sandbox).to.have.property(
          'sandboxId',
          id,
        );
      expect((await client.delete(`/sandboxes/${id}`)).json.status).to.equal('Stopping');
    }
  });

  it('promotes a key at one replica, and revokes it at another', async () => {
    await linkedToAll();
    const [one, other] = clients() as [HttpClient, HttpClient];
    const { json: made } = await one.post('/api-keys', {});
    const path = `/admin/api-keys/${String(made['name']).replace('/', '%2F')}/promote`;
    expect((await other.post(path)).json.status).to.equal('promoted');
    const atWorker = worker.client(String(made['apiKey']));
    const isTold = (status: number): Promise<void> =>
      eventually(
        async () => (await atWorker.get('/sandboxpools')).status === status,
        `the key is answered with ${status}`,
        PATIENCE_MS,
      );
    await isTold(200);
    await eventually(
      async () => (await one.post(path)).json.errorCode === 'ALREADY_GLOBAL',
      'the other replica knows that it is global',
      PATIENCE_MS,
    );
    await one.delete(`/api-keys/${String(made['keyId'])}`);
    await isTold(401);
  });

  it('is followed by its worker to a replica that is new', async () => {
    expect(await replicas().replica(0).stop()).to.equal(0);
    await replicas().replica(0).start();
    await linkedToAll();
    for (const client of clients())
      expect((await client.get('/sandboxpools/w1::default')).status).to.equal(200);
  });
});
