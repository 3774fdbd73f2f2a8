import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { CuttableWay } from '../support/harness/cuttable-way.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { bodyOf, claim, run, stocked } from '../support/harness/on-a-daemon.ts';

describe('a cluster of a fleet', function () {
  const daemons: DaemonUnderTest[] = [];
  let hub: DaemonUnderTest;
  let east: DaemonUnderTest;
  /** Leads to `east`, wherever it listens. */
  let way: CuttableWay;
  let worker: DaemonUnderTest;
  /** A sandbox that runs on `west` from the first test on. */
  let moved = '';
  let promotedKey = '';

  const managed = async (clusterId: string): Promise<DaemonUnderTest> => {
    const none = ['--default-pool-replicas', '0'];
    const manager = await DaemonUnderTest.start([
      ...['--role', 'manager', '--cluster-id', clusterId, ...none],
    ]);
    daemons.push(manager);
    return manager;
  };
  /** The flags of `west` at a manager, with a new token of it. */
  const joining = async (
    manager: DaemonUnderTest,
    url = manager.run.address.replace('http', 'ws'),
  ): Promise<readonly string[]> => {
    const file = join(manager.dataDir, 'west.token');
    const { stdout } = await manager.cli(['clusters', 'join-token', 'west']);
    writeFileSync(file, stdout, { mode: 0o600 });
    return ['--fleet-managers', url, '--fleet-join-token-file', file];
  };
  const started = async (manager: DaemonUnderTest): Promise<DaemonUnderTest> => {
    const flags = ['--cluster-id', 'west', '--default-pool-replicas', '2'];
    const joins = await joining(manager, manager === east ? way.url : undefined);
    const daemon = await DaemonUnderTest.start([...flags, ...joins]);
    daemons.push(daemon);
    return daemon;
  };
  const stands = (client: HttpClient, status: string): Promise<void> =>
    eventually(
      async () =>
        (await client.get('/clusters')).json.items?.some(
          (each) => each['clusterID'] === 'west' && each['status'] === status,
        ) === true,
      `west is ${status}`,
    );
  const errorOf = async (client: HttpClient, path: string): Promise<string> => {
    const { status, json } = await client.get(path);
    return `${status} ${json.errorCode ?? ''}`;
  };
  /** A key of the manager that is good at the own address of the worker. */
  const promoted = async (manager: DaemonUnderTest, at: DaemonUnderTest): Promise<string> => {
    const { json } = await manager.client().post('/api-keys', {});
    const path = `/admin/api-keys/${String(json['name']).replace('/', '%2F')}/promote`;
    expect((await manager.client(manager.adminKey).post(path)).status).to.equal(200);
    const key = String(json['apiKey']);
    await isAnswered(at, key, 200);
    return key;
  };
  const isAnswered = (at: DaemonUnderTest, key: string, status: number): Promise<void> =>
    eventually(
      async () => (await at.client(key).get('/sandboxpools')).status === status,
      `the key is ${status}`,
    );

  const stateOf = async (client: HttpClient): Promise<string> => {
    const { env } = bodyOf(await client.get('/envs/e')) as {
      readonly env: {
        readonly status: {
          readonly clusters: readonly {
            readonly clusterID: string;
            readonly observedMembers: readonly { readonly state: string }[];
          }[];
        };
      };
    };
    const west = env.status.clusters.find(({ clusterID }) => clusterID === 'west');
    return west?.observedMembers[0]?.state ?? 'none';
  };
  const isIn = (client: HttpClient, state: string): Promise<void> =>
    eventually(async () => (await stateOf(client)) === state, `it is ${state}`);
  /** An env of the manager with one member, on the worker. */
  const withEnv = async (client: HttpClient): Promise<void> => {
    const env = { name: 'e', templateRef: { name: 'default' } };
    expect((await client.post('/envs', env)).status).to.equal(201);
    const member = { name: 'a', clusterID: 'west', replicas: 0 };
    expect((await client.post('/envs/e/sandboxpools', member)).status).to.equal(201);
    await isIn(client, 'Active');
  };

  before(async () => {
    [hub, east] = await Promise.all([managed('hub'), managed('east')]);
    way = await CuttableWay.to(east.run.address);
    worker = await started(hub);
    await stands(hub.client(), 'Connected');
  });
  after(async () => {
    for (const daemon of daemons.toReversed()) await daemon.dispose();
    way?.stop();
  });

  it('moves to another manager with its running sandboxes', async () => {
    await stocked(hub.client(), 2, 'west::default');
    moved = await claim(hub.client(), 'west::default');
    const key = await promoted(hub, worker);
    await withEnv(hub.client());
    const flags = await joining(east, way.url);
    expect(await worker.stop()).to.equal(0);
    await worker.start(flags);
    await stands(east.client(), 'Connected');

    expect((await run(east.client(), moved, 'echo on')).stdout).to.equal('on\n');
    expect((await east.client().get('/sandboxes')).json.items?.[0]).to.include({
      sandboxId: moved,
    });
    await isAnswered(worker, key, 401);

    await stands(hub.client(), 'Disconnected');
    expect(await errorOf(hub.client(), `/sandboxes/${moved}`)).to.equal('503 CLUSTER_UNAVAILABLE');
    expect((await hub.cli(['clusters', 'remove', 'west'])).code).to.equal(0);
    expect(await errorOf(hub.client(), `/sandboxes/${moved}`)).to.equal('404 CLUSTER_NOT_FOUND');
    expect((await hub.client().get('/sandboxes')).json).not.to.have.property('incomplete');

    await isIn(hub.client(), 'Unreachable');
    expect((await hub.client().delete('/envs/e/sandboxpools/a')).status).to.equal(200);
    await isIn(hub.client(), 'none');
    const own = worker.client();
    expect((await own.get('/sandboxpools/a')).status).to.equal(200);
    expect((await own.delete('/envs/e')).status).to.equal(200); // the cluster's own by now
    for (const path of ['/envs/e', '/sandboxpools/a'])
      await eventually(async () => (await own.get(path)).status === 404, path);
  });

  it('is found again by a restored manager', async () => {
    promotedKey = await promoted(east, worker);
    await withEnv(east.client());
    const file = join(hub.dataDir, 'east.tar.gz');
    expect((await east.cli(['backup', file])).code).to.equal(0);
    await east.kill();
    await east.cli(['stop', '--all']);
    for (const name of readdirSync(east.dataDir))
      rmSync(join(east.dataDir, name), { recursive: true, force: true, maxRetries: 5 });
    expect(spawnSync('tar', ['-xzf', file, '-C', east.dataDir]).status).to.equal(0);
    await isAnswered(worker, promotedKey, 200); // alone meanwhile
    way.leadTo(await east.start());
    await stands(east.client(), 'Connected');
    expect((await run(east.client(), moved, 'echo on')).stdout).to.equal('on\n');
    await isAnswered(worker, promotedKey, 200);
    await isIn(east.client(), 'Active');
  });

  it('is disconnected by its own admin, and still serves its own tenants', async () => {
    const said = (...words: readonly string[]) => worker.cli(['managers', ...words, '--admin']);
    expect(await said('cut-off')).to.deep.include({ code: 0, stderr: '' });
    expect(await errorOf(worker.client(promotedKey), '/sandboxpools')).to.match(/^401/);
    await stands(east.client(), 'Disconnected');
    await worker.stop();
    await worker.start(['--fleet-managers', way.url]);
    expect((await said()).stdout).to.match(/^cut off: +since .*\nlinks: +0$/m);
    for (const path of ['', '/logs', '/events', '/files?path=/etc', '/processes'])
      expect(await errorOf(east.client(), `/sandboxes/${moved}${path}`)).to.equal(
        '503 CLUSTER_UNAVAILABLE',
      );
    expect(await errorOf(east.client(), '/sandboxpools/west::default')).to.match(/^503/);
    const refused = await east.client().post('/sandboxes', { poolName: 'west::default' });
    expect(refused.json.errorCode).to.equal('CLUSTER_UNAVAILABLE');
    await isAnswered(worker, promotedKey, 401);
    await stocked(worker.client(), 1);
    const own = await claim(worker.client());
    expect((await run(worker.client(), own, 'echo own')).stdout).to.equal('own\n');
    const bare = moved.slice('west.'.length);
    expect((await run(worker.client(), bare, 'echo on')).stdout).to.equal('on\n');

    expect((await said('let-in')).code).to.equal(0);
    await stands(east.client(), 'Connected');
    expect((await run(east.client(), moved, 'echo back')).stdout).to.equal('back\n');
    await isAnswered(worker, promotedKey, 200);
  });

  it('can be lost for good, and another cluster takes its id', async () => {
    const client = east.client();
    await worker.kill();
    await worker.dispose();
    await stands(client, 'Disconnected');
    expect((await client.get('/sandboxes')).json).to.include({ incomplete: true });
    await isIn(client, 'Unreachable');
    const other = await started(east);
    await stands(client, 'Connected');
    await isAnswered(other, promotedKey, 200);
    await isIn(client, 'Active');
    expect((await other.client().get('/sandboxpools/a')).status).to.equal(200);
    expect(await errorOf(client, `/sandboxes/${moved}`)).to.equal('404 SANDBOX_NOT_FOUND');
    await eventually(
      async () => !('incomplete' in (await client.get('/sandboxes')).json),
      'the list is whole',
    );
    await stocked(client, 2, 'west::default');
    const id = await claim(client, 'west::default');
    expect((await run(other.client(), id, 'echo new')).stdout).to.equal('new\n');
  });
});
