import { expect } from 'chai';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import {
  aTemplateFolder,
  claim,
  finished,
  giveBack,
  poolStatus,
  run,
  stocked,
} from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

const container = (more: object = {}): object => ({ name: 'main', image: 'host', ...more });

const TEMPLATES = {
  full: {
    description: 'everything a template can say',
    containers: [
      {
        name: 'worker',
        image: 'host',
        command: ['/bin/sh', '-c'],
        args: [
          'echo "$GREETING in $(pwd) with $0 $1" > /tmp/begun; exec sleep infinity',
          'zero',
          'one two',
        ],
        env: [
          { name: 'GREETING', value: 'hello there' },
          { name: 'EMPTY', value: '' },
        ],
        workingDir: '/tmp',
        resources: {
          requests: { cpu: '250m', memory: '32Mi' },
          limits: { cpu: '500m', memory: '64Mi' },
        },
        ports: [{ name: 'web', containerPort: 8080 }],
      },
    ],
    startupTimeout: '10s',
    idleTimeout: '20m',
    maxLifetime: '1h',
    network: 'none',
  },
  brief: { containers: [container()], maxLifetime: '2s' },
  idler: { containers: [container()], idleTimeout: '1s' },
  connected: { containers: [container()], network: 'host' },
  absent: { containers: [container({ command: ['/no/such/program', 'x'] })] },
};

describe("the contract: a user's own templates", () => {
  const templates = aTemplateFolder(TEMPLATES);
  let daemon: DaemonUnderTest;
  let client: HttpClient;

  before(async function () {
    daemon = await DaemonUnderTest.start(line`--templates-dir ${templates.folder}
      --default-pool-replicas 0 --breaker-first-pause-seconds 1 --log-level info`);
    client = daemon.client();
  });

  after(async function () {
    await daemon.dispose();
    templates.remove();
  });

  const pool = async (template: string, replicas = 1): Promise<void> => {
    const { status, text } = await client.post('/sandboxpools', {
      name: template,
      templateName: template,
      replicas,
    });
    expect(status, text).to.equal(201);
  };

  it('the instance has the command, args, env, working folder and resources', async () => {
    await pool('full');
    const made = (await client.get('/sandboxpools/full')).json.template;
    expect(made).to.include({ cpu: '500m', memory: '64Mi' });
    const id = await claim(client, 'full');
    const mark = await within(
      'its main process has begun',
      async () => (await run(client, id, 'cat /tmp/begun')).stdout || undefined,
    );
    expect(mark).to.equal('hello there in /tmp with zero one two\n');
    expect(
      (await run(client, id, 'pwd; echo "$GREETING"; echo "[${EMPTY-unset}]"')).stdout,
    ).to.equal('/tmp\nhello there\n[]\n');
    expect(
      (await run(client, id, 'echo "$GREETING"', { env: { GREETING: 'mine' } })).stdout,
    ).to.equal('mine\n');
    expect((await run(client, id, 'true', { container: 'worker' })).exitCode).to.equal(0);
    const { json } = await client.get('/sandboxes?poolName=full');
    expect(json.items?.[0]).to.deep.include({
      cpu: '500m',
      memory: '64Mi',
      containerImages: { worker: 'host' },
    });
    const timeout = (await client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeout: '20m' })).json
      .sandbox;
    expect(timeout).to.include({ idleTimeout: '20m' });
    await giveBack(client, id);
  });

  it('a sandbox ends at its maximum lifetime, however busy, and gives that reason', async () => {
    await pool('brief');
    const id = await claim(client, 'brief', { idleTimeout: '10m' });
    await within('it is over', async () => {
      const { status } = await client.post(`/sandboxes/${id}/exec`, { command: 'sleep 0.2' });
      return status !== 200 || undefined;
    });
    const end = await finished(client, id);
    const lived = Date.parse(String(end['terminatedAt'])) - Date.parse(String(end['claimedAt']));
    expect(lived).to.be.at.least(2_000);
    expect(end).to.include({
      endReason: 'max-lifetime',
      durationSeconds: Math.floor(lived / 1_000),
    });
  });

  it('the maximum lifetime starts at the claim', async () => {
    await stocked(client, 1, 'brief');
    const [before] = (await client.get('/sandboxes?phase=Idle&poolName=brief')).json.items ?? [];
    const since = performance.now();
    await within(
      'more than its life is over',
      () => performance.now() - since > 2_300 || undefined,
    );
    const [after] = (await client.get('/sandboxes?phase=Idle&poolName=brief')).json.items ?? [];
    expect(after?.['sandboxId']).to.equal(before?.['sandboxId']);
  });

  it("the template's idle timeout applies to claims without one", async () => {
    await pool('idler');
    const id = await claim(client, 'idler');
    expect(await finished(client, id)).to.include({ endReason: 'idle-timeout' });
    const spared = await claim(client, 'idler', { idleTimeout: '0' });
    const since = performance.now();
    await within(
      'more than its timeout is over',
      () => performance.now() - since > 1_500 || undefined,
    );
    expect((await client.get(`/sandboxes/${spared}`)).status).to.equal(200);
    await giveBack(client, spared);
  });

  it("network host reaches the machine's network, and network none reaches nothing", async () => {
    const server = createServer((socket) => socket.end('hello\n')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    await pool('connected');
    const command = ['bash', '-c', `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`];
    const connected = await claim(client, 'connected');
    expect((await run(client, connected, command)).stdout).to.equal('hello\n');
    await client.put('/sandboxpools/full', { replicas: 1 });
    const alone = await claim(client, 'full');
    expect(await run(client, alone, command)).to.include({ stdout: '', exitCode: 1 });
    expect(
      (await run(client, alone, 'cat /proc/net/dev | tail -n +3 | cut -d: -f1')).stdout.trim(),
    ).to.equal('lo');
    server.close();
    await giveBack(client, connected);
    await giveBack(client, alone);
  });

  it('a pool with an invalid command fails after three starts, logs the reason, and pauses', async () => {
    const [name, reason] = ['absent', 'command not found: /no/such/program'];
    await pool(name, 2);
    await within(
      'it is Failed',
      async () => (await poolStatus(client, name))['phase'] === 'Failed' || undefined,
    );
    await within('the log says why', () => daemon.run.stderr().includes(reason) || undefined); // it comes by another pipe than the answer
    const claimed = await client.post('/sandboxes', { poolName: name });
    expect(claimed.json.errorCode).to.equal('POOL_EXHAUSTED');
    expect((await client.delete(`/sandboxpools/${name}`)).status).to.equal(200);
    await within(
      'it is gone',
      async () => (await client.get(`/sandboxpools/${name}`)).status === 404 || undefined,
    );
  });

  it('a pool recovers once its command exists again', async function () {
    await daemon.stop();
    writeFileSync(
      join(templates.folder, 'absent.json'),
      JSON.stringify({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name: 'absent' },
        spec: { containers: [container()] },
      }),
    );
    await daemon.start();
    client = daemon.client();
    const made = await client.post('/sandboxpools', {
      name: 'mended',
      templateName: 'absent',
      replicas: 1,
    });
    expect(made.json.template).to.include({ templateVersion: '2' });
    await stocked(client, 1, 'mended');
  });

  it("an invalid template stops the daemon's start, with file and field", async function () {
    const bad = aTemplateFolder({
      bad: { containers: [container({ colour: 'red' })], idleTimeout: 'soon' },
    });
    const started = await DaemonUnderTest.start(['--templates-dir', bad.folder]).then(
      () => 'started',
      (error: Error) => error.message,
    );
    expect(started).to.include('bad.json').and.to.include('idleTimeout').and.to.include('colour');
    bad.remove();
  });
});
