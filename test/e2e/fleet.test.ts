import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { SDKS } from '../e2b/a-sdk.ts';
import { SERVICE_STEPS } from '../e2b/service-steps.ts';
import { rememberChild } from '../../local-cluster/started-processes.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { TerminalUnderTest } from '../support/harness/a-terminal.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { bodyOf, claim, run, stocked } from '../support/harness/on-a-daemon.ts';
import { ProcessSocket } from '../support/harness/process-socket.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { line } from '../support/harness/line.ts';

const COMPATIBLE = ['--compatible-api-listen', '127.0.0.1:0'];

describe('a fleet of real daemons', function () {
  let hub: DaemonUnderTest;
  const workers: DaemonUnderTest[] = [];
  let client: HttpClient;

  before(async () => {
    hub = await DaemonUnderTest.start([
      ...line`--role manager --cluster-id hub --default-pool-replicas 1`,
      ...COMPATIBLE,
    ]);
    for (const clusterId of ['w1', 'w2']) {
      const file = join(hub.dataDir, `${clusterId}.token`);
      const { stdout } = await hub.cli(['clusters', 'join-token', clusterId]);
      writeFileSync(file, stdout, { mode: 0o600 });
      workers.push(
        await DaemonUnderTest.start([
          ...line`--cluster-id ${clusterId}
            --fleet-managers ${hub.run.address.replace('http', 'ws')}
            --fleet-join-token-file ${file} --default-pool-replicas 2`,
          ...COMPATIBLE,
        ]),
      );
    }
    client = hub.client();
    for (const clusterId of ['w1', 'w2']) {
      await connected(clusterId);
      await stocked(client, 2, `${clusterId}::default`);
    }
  });

  after(async () => {
    for (const daemon of [...workers, hub]) await daemon.dispose();
  });

  const connected = (clusterId: string): Promise<void> =>
    eventually(
      async () =>
        (await client.get('/clusters')).json.items?.some(
          (each) => each['clusterID'] === clusterId && each['status'] === 'Connected',
        ) === true,
      `${clusterId} is connected`,
    );

  it('claims, runs, moves files, opens terminals and ends on a worker, from one address', async () => {
    const id = await claim(client, 'w1::default');
    expect(id).to.match(/^w1\./);
    expect((await run(client, id, 'echo here')).stdout).to.equal('here\n');
    const bytes = randomBytes(3_000_000);
    const path = `/sandboxes/${id}/files?path=/tmp/a`;
    const headers = { 'Content-Type': 'application/octet-stream' };
    expect((await client.put(path, undefined, { raw: bytes, headers })).status).to.equal(201);
    expect((await run(client, id, 'wc -c </tmp/a')).stdout.trim()).to.equal('3000000');
    const terminal = await TerminalUnderTest.open(hub, client, id, { cluster: 'w1' });
    expect(await terminal.ask('echo $((40 + 2))')).to.include('42');
    await terminal.hangUp();
    expect((await client.get('/sandboxes')).json.items).to.have.nested.property(
      '[0].sandboxId',
      id,
    );
    expect((await client.delete(`/sandboxes/${id}`)).json.status).to.equal('Stopping');
  });

  it("serves E2B's SDK, which finds a sandbox of a worker by its id", async () => {
    const [, Sandbox] = [...SDKS].at(-1)!;
    const url = hub.compatibleUrl;
    const options = { apiKey: toCompatibleForm(hub.tenantKey), apiUrl: url, sandboxUrl: url };
    const envs = { OF_CLAIM: 'claim' };
    const sandbox = await Sandbox.create('w1::default', { ...options, timeoutMs: 600_000, envs });
    expect(sandbox.sandboxId).to.match(/^[0-9a-f]{32}w1$/);
    for (const step of Object.values(SERVICE_STEPS)) await step({ Sandbox, options, sandbox });
    const listed = await Sandbox.list(options).nextItems();
    expect(listed.map(({ sandboxId }) => sandboxId)).to.include(sandbox.sandboxId);
    expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(true);
    expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(false);
  });

  it("is counted, audited and inspected from the manager's command line", async () => {
    const id = await claim(client, 'w1::default');
    const ran = async (...words: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await hub.cli([...words, '--admin']);
      expect([code, stderr]).to.deep.equal([0, '']);
      return stdout;
    };
    expect(await ran('stats')).to.match(/^Running +[1-9]/m);
    expect(await ran('stats', '--cluster', 'w2')).not.to.match(/^Running/m);
    await eventually(async () => {
      const text = await ran('audit', '--operation', 'claimSandbox', '-o', 'wide');
      return ['hub', 'w1'].every((clusterId) => text.includes(` ${clusterId} `));
    }, 'the audit of both clusters');
    expect(await ran('clusters')).to.match(/^w1 +Connected +no +\S+Z +1 +\d+\.\d ms$/m);
    const { headers } = await client.get(`/sandboxes/${id}`);
    const link = `${headers['sandpool-link']} `;
    expect(await ran('clusters', 'get', String(headers['sandpool-cluster']))).to.include(link);
    expect(await ran('debug', 'sandbox', id)).to.include(id);
    expect(await ran('debug', 'pool', 'w2::default')).to.match(/^pool: +w2::default\/default$/m);
    const reader = await EventReader.open(
      Number(new URL(hub.run.address).port),
      `/debug/actors/sandbox/${id}/inspect`,
      { 'SERVICE-API-KEY': hub.adminKey },
    );
    await reader.read().until((all) => all[0]?.event === 'seen-by', 'who sees it');
    await client.delete(`/sandboxes/${id}`);
    await reader.until((all) => all.at(-1)?.event === 'end', 'it is gone');
    reader.close();
  });

  /** A command of the manager's own that goes on, and what it has printed so far. */
  const started = (...args: readonly string[]) => {
    const child = spawn(process.execPath, ['dist/cli/main.js', ...args], {
      env: { ...process.env, SANDPOOL_DATA_DIR: hub.dataDir },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (part: string) => {
        said[name] += part;
      });
    rememberChild(`sandpool ${args.join(' ')}`, child, () => said.stdout + said.stderr);
    return { said, ended: once(child, 'close').then(([code]) => Number(code)) };
  };

  it('follows logs, a process and an actor of a worker to their end', async () => {
    const [w1] = workers as [DaemonUnderTest, DaemonUnderTest];
    const talker = 'echo first; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo é; sleep 1000';
    const container = { name: 'main', image: 'host', command: ['/bin/sh', '-c', talker] };
    const made = await w1.client(w1.adminKey).post('/admin/sandbox-templates', {
      crdJson: JSON.stringify({
        ...shared('64Mi'),
        metadata: { name: 'talker' },
        spec: { containers: [container] },
      }),
    });
    expect(made.status, made.text).to.equal(201);
    const pool = { name: 'talkers', templateName: 'talker', replicas: 1 };
    expect((await w1.client().post('/sandboxpools', pool)).status).to.equal(201);
    await stocked(client, 1, 'w1::talkers');
    const id = await claim(client, 'w1::talkers');
    const headers = { 'SERVICE-API-KEY': hub.tenantKey };
    const logs = await EventReader.open(hub.run.port, `/sandboxes/${id}/logs?follow=true`, headers);
    const isLogged = (line: string): Promise<unknown> =>
      logs.until((all) => all.some(({ data }) => data['line'] === line), line);
    logs.read();
    await isLogged('first');
    const actor = started('debug', 'sandbox', id, '-f', '--admin');
    await eventually(() => actor.said.stdout.includes(id), 'where it stands');

    const begun = await client.post(`/sandboxes/${id}/processes`, {
      command: ['/bin/sh', '-c', 'touch /tmp/go; cat; echo of it >&2'],
      stdin: true,
    });
    const { process: cat } = bodyOf(begun) as { readonly process: { readonly processId: string } };
    const path = `/sandboxes/${id}/processes/${cat.processId}/output`;
    const socket = new ProcessSocket(hub.run.port, path, hub.tenantKey);
    const text = 'ü'.repeat(20_000);
    for (let n = 0; n < 4; n += 1) socket.send(Buffer.from(text));
    await eventually(() => socket.printed('stdout') === text.repeat(4), 'its output');
    socket.send('{"type":"eof"}');
    expect(await socket.closed).to.deep.equal([1000, 'the process ended']);
    expect([socket.printed('stderr'), socket.texts]).to.deep.equal([
      'of it\n',
      ['{"type":"exit","exitCode":0}'],
    ]);

    await isLogged('é');
    await client.delete(`/sandboxes/${id}`);
    await logs.until((all) => all.at(-1)?.event === 'end', 'the end of its log');
    expect([await actor.ended, actor.said.stderr]).to.deep.include(0);
    expect(actor.said.stderr).to.include('it is gone');
    expect(actor.said.stdout).to.match(/stopping/i);
  });

  /** Waits until a key is answered so at the own address of a worker. */
  const isTold = (worker: DaemonUnderTest, key: string, status: number): Promise<void> =>
    eventually(
      async () => (await worker.client(key).get('/sandboxpools')).status === status,
      `the key is answered with ${status}`,
    );
  const promoted = async (): Promise<{ readonly key: string; readonly keyId: string }> => {
    const { json: made } = await client.post('/api-keys', {});
    const path = `/admin/api-keys/${String(made['name']).replace('/', '%2F')}/promote`;
    const admin = hub.client(hub.adminKey);
    expect((await untilAnswered(200, () => admin.post(path))).json.status).to.equal('promoted');
    expect((await admin.post(path)).json.errorCode).to.equal('ALREADY_GLOBAL');
    return { key: String(made['apiKey']), keyId: String(made['keyId']) };
  };

  it("accepts a promoted key at a worker's own address, until it is revoked", async () => {
    const [w1] = workers as [DaemonUnderTest, DaemonUnderTest];
    const { key, keyId } = await promoted();
    await isTold(w1, key, 200);
    const atWorker = w1.client(key);
    for (const refused of [
      await atWorker.post('/api-keys', {}),
      await atWorker.delete(`/api-keys/${keyId}`),
    ])
      expect(refused.json.errorCode).to.equal('CONFLICT');
    await client.delete(`/api-keys/${keyId}`);
    await isTold(w1, key, 401);
    for (const daemon of [hub, ...workers])
      expect(daemon.run.stderr()).not.to.include(key.split('_')[2]);
  });

  const templateAt = async (daemon: DaemonUnderTest): Promise<Record<string, unknown>> =>
    (await daemon.client().get('/sandbox-templates/shared')).json.template ?? {};
  const changed = (crdJson: object, syncSource?: string): Promise<HttpAnswer> =>
    hub
      .client(hub.adminKey)
      .put('/admin/sandbox-templates/shared', { crdJson: JSON.stringify(crdJson), syncSource });
  const shared = (memory: string) => ({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name: 'shared' },
    spec: {
      containers: [{ name: 'main', image: 'host', resources: { limits: { memory } } }],
    },
  });

  it('has the same global template on all clusters, with the revisions of its pools', async () => {
    const [w1, w2] = workers as [DaemonUnderTest, DaemonUnderTest];
    const made = await hub.client(hub.adminKey).post('/admin/sandbox-templates', {
      crdJson: JSON.stringify(shared('64Mi')),
      syncSource: 'global',
    });
    expect(made.status, made.text).to.equal(201);
    expect(made.json.template).to.include({ syncSource: 'global', fleet: 'source' });
    for (const worker of [w1, w2]) {
      await eventually(
        async () => (await templateAt(worker))['fleet'] === 'copy',
        'the worker has it',
      );
      expect(await templateAt(worker)).to.deep.equal({ ...made.json.template, fleet: 'copy' });
    }

    const pool = { name: 'shared', templateName: 'shared', replicas: 0 };
    for (const daemon of [hub, w1, w2])
      expect((await daemon.client().post('/sandboxpools', pool)).status).to.equal(201);
    expect((await changed(shared('96Mi'))).json.template).to.include({ version: '2' });
    const revisions = await Promise.all([hub, w1, w2].map(revisionAtVersion2));
    expect(new Set(revisions).size).to.equal(1);
    const standings = ['templates', 'get', 'shared', '--clusters', '--admin'];
    await eventually(async () => {
      const { stdout } = await hub.cli(standings);
      return ['w1', 'w2'].every((clusterId) =>
        new RegExp(`^${clusterId} +2 +Synced +\\S+Z`, 'm').test(stdout),
      );
    }, 'both say that they have it');

    const refused = await w1
      .client(w1.adminKey)
      .put('/admin/sandbox-templates/shared', { description: 'mine' });
    expect([refused.status, refused.json.errorCode]).to.deep.equal([409, 'CONFLICT']);
    const nowhere = await w1.client(w1.adminKey).post('/admin/sandbox-templates', {
      crdJson: JSON.stringify({ ...shared('64Mi'), metadata: { name: 'x' } }),
      syncSource: 'global',
    });
    expect([nowhere.status, nowhere.json.errorCode]).to.deep.equal([501, 'FEATURE_DISABLED']);
    await hub.client().delete('/sandboxpools/shared');
    await eventually(async () => {
      const used = await hub.client(hub.adminKey).delete('/admin/sandbox-templates/shared');
      expect(used.json.errorCode).to.equal('TEMPLATE_IN_USE');
      return used.text.includes('w1::shared') && !used.text.includes('"name":"shared"');
    }, 'pools of workers alone are in the way');
  });
  const revisionAtVersion2 = async (daemon: DaemonUnderTest): Promise<unknown> => {
    let revision: unknown;
    await eventually(async () => {
      const shown = (await daemon.client().get('/sandboxpools/shared')).json.template;
      revision = (shown?.['status'] as { readonly updateRevision?: string } | undefined)
        ?.updateRevision;
      return shown?.['templateVersion'] === '2';
    }, 'the pool follows the template');
    return revision;
  };

  it('reports a lost or silent worker in time, and uses it once it is back', async () => {
    const [w1, w2] = workers as [DaemonUnderTest, DaemonUnderTest];
    const id = await claim(client, 'w2::default');
    const held = await claim(client, 'w1::default');
    const errorOf = async (of: string): Promise<string | undefined> =>
      (await client.get(`/sandboxes/${of}`)).json.errorCode;
    await w2.kill();
    await eventually(async () => (await errorOf(id)) === 'CLUSTER_UNAVAILABLE', 'w2 is gone');
    expect((await client.get('/sandboxes')).json).to.include({ incomplete: true });
    for (const memory of ['80Mi', '81Mi', '82Mi']) await changed(shared(memory));
    await w2.start();
    await eventually(async () => (await errorOf(id)) === undefined, 'w2 is back');
    await eventually(
      async () => (await templateAt(w2))['version'] === '5',
      'w2 has the versions that it missed',
    );
    expect((await run(client, id, 'echo again')).stdout).to.equal('again\n');

    w1.run.process.kill('SIGSTOP');
    try {
      expect(await errorOf(held)).to.equal('CLUSTER_UNAVAILABLE');
    } finally {
      w1.run.process.kill('SIGCONT');
    }
    await eventually(async () => (await errorOf(held)) === undefined, 'w1 is back');
  });

  it('removes a worker, which continues independently', async () => {
    const [, w2] = workers as [DaemonUnderTest, DaemonUnderTest];
    const { key } = await promoted();
    await isTold(w2, key, 200);
    expect((await hub.cli(['clusters', 'remove', 'w2'])).stdout).to.equal('w2 was removed\n');
    expect(
      (await client.get('/clusters')).json.items?.map((each) => each['clusterID']),
    ).to.deep.equal(['hub', 'w1']);
    await isTold(w2, key, 401);
    expect((await w2.client().get('/sandboxpools')).status).to.equal(200);
    const admin = hub.client(hub.adminKey);
    for (const operation of ['removeCluster', 'makeJoinToken'])
      await eventually(
        async () =>
          JSON.stringify(
            (await admin.get(`/admin/audit?clusterID=hub&operation=${operation}`)).json.items,
          ).includes('"clusterID":"w2"'),
        `${operation} is in the audit`,
      );
  });

  it('answers pending requests when either end of a link stops', async () => {
    const id = await claim(client, 'w1::default');
    for (const [n, daemon] of [workers[0]!, hub].entries()) {
      const asked = run(client, id, `touch /tmp/begun-${n}; sleep 1; echo done`);
      await eventually(
        async () => (await run(client, id, `ls /tmp/begun-${n}`)).exitCode === 0,
        'it has begun',
      );
      const ended = once(daemon.run.process, 'exit');
      daemon.run.process.kill('SIGTERM'); // the client stays
      expect((await asked).stdout).to.equal('done\n');
      expect((await ended)[0]).to.equal(0);
      await daemon.stop();
      if (daemon === hub) break;
      await daemon.start();
      await connected('w1');
    }
  });
});
