import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { CuttableWay } from '../support/harness/cuttable-way.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { bodyOf, claim, run } from '../support/harness/on-a-daemon.ts';

interface ShownMember {
  readonly name: string;
  readonly state: string;
  readonly idleCount: number;
  readonly runningCount: number;
  readonly desiredReplicas: number;
}

describe('an env over the clusters of a fleet', function () {
  let hub: DaemonUnderTest;
  let way: CuttableWay;
  const workers: DaemonUnderTest[] = [];
  let client: HttpClient;

  before(async () => {
    const none = ['--default-pool-replicas', '0'];
    hub = await DaemonUnderTest.start(['--role', 'manager', '--cluster-id', 'hub', ...none]);
    way = await CuttableWay.to(hub.run.address);
    for (const [clusterId, manager] of [
      ['w1', way.url],
      ['w2', hub.run.address.replace('http', 'ws')],
    ] as const) {
      const file = join(hub.dataDir, `${clusterId}.token`);
      const { stdout } = await hub.cli(['clusters', 'join-token', clusterId]);
      writeFileSync(file, stdout, { mode: 0o600 });
      const more = ['--fleet-managers', manager, '--fleet-join-token-file', file, ...none];
      workers.push(await DaemonUnderTest.start(['--cluster-id', clusterId, ...more]));
    }
    client = hub.client();
    await eventually(
      async () =>
        (await client.get('/clusters')).json.items?.every(
          (each) => each['status'] === 'Connected',
        ) === true,
      'both are connected',
    );
  });

  after(async () => {
    for (const daemon of [...workers, hub]) await daemon?.dispose();
    way?.stop();
  });

  const shown = async (
    clusterID: string,
  ): Promise<{ readonly lastSnapshotTime: string; readonly members: readonly ShownMember[] }> => {
    const { env } = bodyOf(await client.get('/envs/e')) as {
      readonly env: {
        readonly status: {
          readonly clusters: readonly {
            readonly clusterID: string;
            readonly lastSnapshotTime: string;
            readonly observedMembers: readonly ShownMember[];
          }[];
        };
      };
    };
    const found = env.status.clusters.find((each) => each.clusterID === clusterID);
    return {
      lastSnapshotTime: found?.lastSnapshotTime ?? '',
      members: found?.observedMembers ?? [],
    };
  };
  const shows = (clusterID: string, wanted: Partial<ShownMember>): Promise<void> =>
    eventually(
      async () => {
        const { members } = await shown(clusterID);
        return Object.entries(wanted).every(
          ([field, value]) => members[0]?.[field as keyof ShownMember] === value,
        );
      },
      `${clusterID} shows ${JSON.stringify(wanted)}`,
    );

  it('has members on workers, which match again after a broken link', async () => {
    const [w1, w2] = workers as [DaemonUnderTest, DaemonUnderTest];
    const made = await client.post('/envs', { name: 'e', templateRef: { name: 'default' } });
    expect(made.status, made.text).to.equal(201);
    for (const [name, clusterID, priority] of [
      ['a', 'w1', 10],
      ['b', 'w2', 1],
    ] as const) {
      const added = await client.post('/envs/e/sandboxpools', {
        name,
        clusterID,
        replicas: 2,
        priority,
        maxReplicas: 4,
      });
      expect(added.status, added.text).to.equal(201);
      expect(added.json.template).to.include({ name: `${clusterID}::${name}` });
    }
    await shows('w1', { name: 'a', state: 'Active', idleCount: 2 });
    await shows('w2', { name: 'b', state: 'Active', idleCount: 2 });

    const id = await claim(client, 'e');
    expect(id).to.match(/^w1\./);
    const before = (await w1.client().get('/sandboxpools/a')).json.template;
    way.cut();
    await shows('w1', { state: 'Unreachable' });
    expect((await shown('w1')).lastSnapshotTime).to.match(/^\d{4}-/);
    // What the cluster has goes on by itself, and what the manager is told is done later.
    const own = await claim(w1.client(), 'a');
    const elsewhere = await claim(client, 'e');
    expect(elsewhere).to.match(/^w2\./);
    expect((await client.delete(`/sandboxes/${elsewhere}`)).status).to.equal(200);
    const patch = { overrides: { defaultIdleTimeout: '7m' } };
    expect((await client.send('PATCH', '/envs/e', { body: patch })).status).to.equal(200);
    expect((await client.delete('/envs/e/sandboxpools/b')).status).to.equal(200);
    await eventually(
      async () => (await w2.client().get('/envs/e')).status === 404,
      'the copy on w2 has gone with its last member',
    );
    expect((await w1.client().get('/sandboxpools/a')).json.template).to.deep.include({
      createdAt: before?.['createdAt'],
      spec: before?.['spec'],
    });

    way.heal();
    await shows('w1', { state: 'Active', runningCount: 2 });
    await eventually(
      async () => (await w1.client().get('/envs/e')).text.includes('"defaultIdleTimeout":"7m"'),
      'w1 has what was changed meanwhile',
    );
    const after = (await w1.client().get('/sandboxpools/a')).json.template;
    expect(after?.['createdAt']).to.equal(before?.['createdAt']);
    for (const each of [id, `w1.${own}`])
      expect((await run(client, each, 'echo on')).stdout).to.equal('on\n');
  });

  it('removes a member on a disconnected cluster, even after a restart of the manager', async () => {
    const [w1] = workers as [DaemonUnderTest];
    way.cut();
    await shows('w1', { name: 'a', state: 'Unreachable' });
    expect((await client.delete('/envs/e/sandboxpools/a?force=true')).status).to.equal(200);
    await hub.stop();
    way.leadTo(await hub.start());
    client = hub.client();
    await shows('w1', { name: 'a', state: 'Draining' });
    way.heal();
    await eventually(
      async () => (await w1.client().get('/envs/e')).status === 404,
      'its pool on w1 goes, and the copy with it',
    );
  });
});
