import { expect } from 'chai';
import { WebSocket } from 'ws';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';

const poolStatus = async (
  client: HttpClient,
  name = 'default',
): Promise<Record<string, unknown>> => {
  const { json } = await client.get(`/sandboxpools/${name}`);
  return (json.template?.['status'] ?? {}) as Record<string, unknown>;
};

const idle = (client: HttpClient, count: number, name = 'default') =>
  within(`${count} idle, and none on its way in or out`, async () => {
    const status = await poolStatus(client, name);
    return (
      (status['idleReplicas'] === count &&
        status['startingReplicas'] === 0 &&
        status['stoppingReplicas'] === 0) ||
      undefined
    );
  });

describe('a daemon as a user starts it', () => {
  let daemon: DaemonUnderTest;
  let client: HttpClient;

  before(async function () {
    daemon = await DaemonUnderTest.start();
    client = daemon.client();
    await idle(client, 4);
  });

  after(async function () {
    await daemon.dispose();
  });

  it('claims, runs a command and deletes a sandbox, and the pool starts another', async () => {
    const claimed = await client.post('/sandboxes', { poolName: 'default' });
    expect(claimed.status).to.equal(201);
    const {
      sandboxId = '',
      status,
      poolName,
      namespace,
      podName,
      claimedAt,
    } = claimed.json.sandbox ?? {};
    expect(sandboxId).to.match(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect({ status, poolName, namespace, podName }).to.deep.equal({
      status: 'Running',
      poolName: 'default',
      namespace: 'default',
      podName: `sb-${sandboxId}`,
    });
    expect(claimedAt).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

    const ran = await client.post(`/sandboxes/${sandboxId}/exec`, {
      command: 'echo out; echo err >&2; exit 7',
    });
    expect(ran.status).to.equal(200);
    expect(ran.json).to.include({
      stdout: 'out\n',
      stderr: 'err\n',
      exitCode: 7,
      timedOut: false,
      truncated: false,
    });
    expect(ran.headers).to.have.property('deprecation');

    const deleted = await client.delete(`/sandboxes/${sandboxId}`);
    expect(deleted.status).to.equal(200);
    expect(deleted.json).to.deep.equal({
      sandboxId,
      namespace: 'default',
      poolName: 'default',
      podName: `sb-${sandboxId}`,
      status: 'Stopping',
    });

    const gone = await within('the sandbox is no more', async () => {
      const answer = await client.get(`/sandboxes/${sandboxId}`);
      return answer.status === 404 ? answer : undefined;
    });
    expect(gone.json.error).to.equal('sandbox not found or already terminated');
    await idle(client, 4);
    const { json: list } = await client.get('/sandboxes?phase=Completed');
    expect(list.items?.[0]).to.include({ sandboxId, status: 'Completed', endReason: 'deleted' });
  });

  it('opens a terminal in the sandbox', async () => {
    const { json } = await client.post('/sandboxes', { poolName: 'default' });
    const id = json.sandbox?.['sandboxId'] ?? '';
    const {
      json: { token = '' },
    } = await client.post(`/sandboxes/${id}/exec-token`, {});
    const socket = new WebSocket(
      `ws://127.0.0.1:${daemon.run.port}/ws/clusters/local/sandboxes/${id}/terminal?token=${token}&cols=101&rows=37`,
    );
    let output = '';
    socket.on('message', (bytes: Buffer) => {
      output += bytes.toString();
    });
    const closed = new Promise<number>((resolve, reject) => {
      socket.once('close', resolve);
      socket.once('error', reject);
    });
    await new Promise((resolve) => {
      socket.once('open', resolve);
    });
    socket.send('stty size; id -un; exit\n');
    expect(await closed).to.equal(1000);
    expect(output).to.include('37 101').and.to.include('sandbox');

    const again = new WebSocket(
      `ws://127.0.0.1:${daemon.run.port}/ws/clusters/local/sandboxes/${id}/terminal?token=${token}`,
    );
    const refused = await new Promise<number>((resolve) => {
      again.once('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
    });
    expect(refused).to.equal(401);
    await client.delete(`/sandboxes/${id}`);
    await idle(client, 4);
  });

  it('ends a sandbox at its idle timeout', async () => {
    const { json } = await client.post('/sandboxes', { poolName: 'default' });
    const id = json.sandbox?.['sandboxId'] ?? '';
    const set = await client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeout: '1s' });
    expect(set.json.sandbox)
      .to.include({ idleTimeout: '1s' })
      .and.to.have.property('idleExpiresAt');
    const ended = await within('ended', async () =>
      (await client.get('/sandboxes?phase=Completed')).json.items?.find(
        (item) => item['sandboxId'] === id,
      ),
    );
    expect(ended['endReason']).to.equal('idle-timeout');
  });

  it('creates, fills, resizes and deletes a pool', async () => {
    const made = await client.post('/sandboxpools', {
      name: 'mine',
      templateName: 'default',
      replicas: 2,
    });
    expect(made.status).to.equal(201);
    expect(made.json.template)
      .to.include({
        name: 'mine',
        namespace: 'default',
        team: 'default',
        user: 'default',
        templateVersion: '1',
      })
      .and.to.have.property('createdAt');
    expect(
      (await client.post('/sandboxpools', { name: 'mine', templateName: 'default' })).json,
    ).to.include({ error: 'pool already exists', errorCode: 'ALREADY_EXISTS' });
    await idle(client, 2, 'mine');
    await client.put('/sandboxpools/mine', { replicas: 3 });
    await idle(client, 3, 'mine');
    await client.put('/sandboxpools/mine', { replicas: 1 });
    await idle(client, 1, 'mine');
    const held =
      (await client.post('/sandboxes', { poolName: 'mine' })).json.sandbox?.['sandboxId'] ?? '';
    expect((await client.delete('/sandboxpools/mine')).json).to.deep.equal({
      name: 'mine',
      namespace: 'default',
      status: 'Deleting',
    });
    await within(
      'the pool is no more',
      async () => (await client.get('/sandboxpools/mine')).status === 404 || undefined,
    );
    expect((await client.get(`/sandboxes/${held}`)).json.sandbox?.['status']).to.equal('Running');
    await client.delete(`/sandboxes/${held}`);
  });

  it('is ready, isolated by cgroups, and healthy without a key', async () => {
    const anonymous = daemon.client('');
    expect((await anonymous.get('/healthz')).status).to.equal(200);
    const ready = await anonymous.get('/readyz');
    expect(ready.status).to.equal(200);
    expect(JSON.parse(ready.text))
      .to.have.property('isolation')
      .that.matches(/^cgroup-v[12]$/);
  });
});
