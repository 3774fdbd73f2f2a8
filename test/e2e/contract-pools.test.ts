import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import {
  aTenant,
  bodyOf,
  claim,
  clear,
  finished,
  poolStatus,
  stocked,
} from '../support/harness/on-a-daemon.ts';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

type Pool = Readonly<Record<string, unknown>>;

describe('the contract: pools', () => {
  let daemon: DaemonUnderTest;
  let client: HttpClient;

  before(async function () {
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '1']);
    client = daemon.client();
  });

  after(async function () {
    await daemon.dispose();
  });

  afterEach(async () => {
    await clear(client);
    for (const { name } of (await client.get('/sandboxpools?limit=1000')).json.items ?? []) {
      if (name !== 'default') await client.delete(`/sandboxpools/${String(name)}?force=true`);
    }
    await within(
      'one pool is left',
      async () => (await client.get('/sandboxpools')).json.total === 1 || undefined,
    );
  });

  const create = (name: unknown, more: object = {}, as = client): Promise<HttpAnswer> =>
    as.post('/sandboxpools', { name, templateName: 'default', ...more });

  const gone = (name: string): Promise<unknown> =>
    within(
      `${name} is gone`,
      async () => (await client.get(`/sandboxpools/${name}`)).status === 404 || undefined,
    );

  it('POST answers 201 with the pool in the envelope `template`', async () => {
    const answer = await create('mine', {
      replicas: 2,
      labels: { 'quota.example/url': 'https://quota.example/x' },
      annotations: { note: 'n' },
    });
    expect(answer.status).to.equal(201);
    const { template, ...rest } = bodyOf(answer) as { template: Pool };
    expect(rest).to.deep.equal({});
    const { createdAt, status, ...others } = template;
    expect(createdAt).to.match(TIMESTAMP);
    expect(others).to.deep.equal({
      name: 'mine',
      namespace: 'default',
      cpu: '1',
      memory: '256Mi',
      team: 'default',
      user: 'default',
      templateVersion: '1',
      spec: { replicas: 2 },
      labels: { 'quota.example/url': 'https://quota.example/x' },
      annotations: { note: 'n', 'sandpool.dev/template-name': 'default' },
    });
    expect(Object.keys(status as object).sort()).to.deep.equal([
      'conditions',
      'failedReplicas',
      'idleReplicas',
      'observedTemplateVersion',
      'outdatedReplicas',
      'phase',
      'runningReplicas',
      'startingReplicas',
      'stoppingReplicas',
      'template',
      'unavailableIdleReplicas',
      'updateRevision',
      'updatedReplicas',
    ]);
    await stocked(client, 2, 'mine');
    const { conditions, updateRevision, ...counts } = await poolStatus(client, 'mine');
    expect(counts).to.deep.equal({
      phase: 'Ready',
      idleReplicas: 2,
      unavailableIdleReplicas: 0,
      runningReplicas: 0,
      startingReplicas: 0,
      stoppingReplicas: 0,
      failedReplicas: 0,
      updatedReplicas: 2,
      outdatedReplicas: 0,
      observedTemplateVersion: '1',
      template: {
        containers: [
          {
            name: 'main',
            image: 'host',
            command: ['/bin/sleep', 'infinity'],
            workingDir: '/home/sandbox',
            env: [],
            resources: { limits: { cpu: '1000m', memory: '256Mi' } },
          },
        ],
        network: 'none',
        startupTimeout: '30s',
        idleTimeout: '30m',
        maxLifetime: '0s',
      },
    });
    expect(updateRevision).to.match(/^[0-9a-f]{16}$/);
    expect(conditions).to.deep.equal([
      {
        type: 'Progressing',
        status: 'False',
        reason: 'RolloutComplete',
        message: '',
        lastTransitionTime: createdAt,
      },
      {
        type: 'Degraded',
        status: 'False',
        reason: 'AsExpected',
        message: '',
        lastTransitionTime: createdAt,
      },
      {
        type: 'TemplateResolved',
        status: 'True',
        reason: 'Resolved',
        message: '',
        lastTransitionTime: createdAt,
      },
    ]);
  });

  it("POST with a name in use in the namespace is 409, another's too; in another namespace it is free", async () => {
    await create('mine', { replicas: 0 });
    for (const as of [client, await aTenant(daemon, 'default', 'gina')]) {
      const answer = await create('mine', {}, as);
      expect(answer.status).to.equal(409);
      expect(answer.json).to.include({ error: 'pool already exists', errorCode: 'ALREADY_EXISTS' });
    }
    const other = await aTenant(daemon, 'elsewhere', 'gina');
    expect((await create('mine', { replicas: 0 }, other)).json.template).to.include({
      namespace: 'elsewhere',
      user: 'gina',
    });
    await other.delete('/sandboxpools/mine');
  });

  it('of 16 at once with one name one is made', async () => {
    const answers = await Promise.all(
      Array.from({ length: 16 }, () => create('mine', { replicas: 0 })),
    );
    expect(answers.filter(({ status }) => status === 201)).to.have.length(1);
    expect(answers.filter(({ status }) => status === 409)).to.have.length(15);
  });

  it("the list is paged, newest first, of the caller's own; all is an admin's", async () => {
    for (const name of ['p1', 'p2', 'p3']) await create(name, { replicas: 0 });
    const names = async (query: string, as = client): Promise<readonly unknown[]> =>
      ((await as.get(`/sandboxpools${query}`)).json.items ?? []).map((item) => item['name']);
    const whole = bodyOf(await client.get('/sandboxpools')) as Record<string, unknown>;
    expect(whole)
      .to.include({ total: 4, limit: 20, offset: 0 })
      .and.to.have.all.keys('items', 'total', 'limit', 'offset');
    expect(await names('')).to.deep.equal(['p3', 'p2', 'p1', 'default']);
    expect(await names('?limit=2')).to.deep.equal(['p3', 'p2']);
    expect(await names('?limit=2&offset=3')).to.deep.equal(['default']);
    expect(bodyOf(await client.get('/sandboxpools?offset=9'))).to.deep.equal({
      items: [],
      total: 4,
      limit: 20,
      offset: 9,
    });
    const { status, ...alone } = (await client.get('/sandboxpools/p3')).json.template as Pool;
    const { template, ...listedStatus } = status as Readonly<Record<string, unknown>>;
    expect(template, 'of one by itself').to.have.nested.property('containers[0].image', 'host');
    expect(((await client.get('/sandboxpools')).json.items ?? [])[0]).to.deep.equal({
      ...alone,
      status: listedStatus,
    });
    for (const query of ['limit=0', 'limit=1001', 'offset=-1'])
      expect((await client.get(`/sandboxpools?${query}`)).status, query).to.equal(400);
    const other = await aTenant(daemon, 'elsewhere', 'ida');
    expect(await names('', other)).to.deep.equal([]);
    expect((await other.get('/sandboxpools?all=true')).json.errorCode).to.equal('ADMIN_REQUIRED');
    expect(await names('?all=true', daemon.client(daemon.adminKey))).to.include.members([
      'p1',
      'p2',
      'p3',
      'default',
    ]);
  });

  it('PUT replicas answers the new wish, grows and shrinks the stock, and never touches a running sandbox', async () => {
    await create('mine', { replicas: 3 });
    const held = [await claim(client, 'mine'), await claim(client, 'mine')];
    const shrunk = await client.put('/sandboxpools/mine', { replicas: 0 });
    expect(shrunk.status).to.equal(200);
    expect(shrunk.json.template?.['spec']).to.deep.equal({ replicas: 0 });
    await stocked(client, 0, 'mine');
    expect(await poolStatus(client, 'mine')).to.include({ runningReplicas: 2, idleReplicas: 0 });
    for (const id of held)
      expect((await client.get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.equal('Running');
    await client.put('/sandboxpools/mine', { replicas: 4 });
    await stocked(client, 2, 'mine');
    for (const replicas of [-1, '3', 1.5, 10_001])
      expect(
        (await client.put('/sandboxpools/mine', { replicas })).status,
        String(replicas),
      ).to.equal(400);
    expect((await client.get('/sandboxpools/mine')).json.template?.['spec']).to.deep.equal({
      replicas: 4,
    });
  });

  it('a pool of replicas 0 is Ready, and answers a claim with 429', async () => {
    await create('empty', { replicas: 0 });
    await within(
      'it is Ready',
      async () => (await poolStatus(client, 'empty'))['phase'] === 'Ready' || undefined,
    );
    const { status, json } = await client.post('/sandboxes', { poolName: 'empty' });
    expect(status).to.equal(429);
    expect(json.errorCode).to.equal('POOL_EXHAUSTED');
    expect(json.detail).to.include({ idle: 0, running: 0, starting: 0, stopping: 0, failed: 0 });
  });

  it('replicas counts running ones: a claim starts no other, and never are there more', async () => {
    await create('mine', { replicas: 3 });
    await stocked(client, 3, 'mine');
    const id = await claim(client, 'mine');
    expect(await poolStatus(client, 'mine')).to.include({
      phase: 'Ready',
      idleReplicas: 2,
      runningReplicas: 1,
      startingReplicas: 0,
    });
    await client.delete(`/sandboxes/${id}`);
    await within('it is full again', async () => {
      const { idleReplicas, runningReplicas, startingReplicas } = (await poolStatus(
        client,
        'mine',
      )) as Record<string, number>;
      expect((idleReplicas ?? 0) + (runningReplicas ?? 0) + (startingReplicas ?? 0)).to.be.at.most(
        3,
      );
      return idleReplicas === 3 || undefined;
    });
  });

  it('DELETE answers Deleting; idle ones go, running ones live on, and the name is free again', async () => {
    await create('mine', { replicas: 3 });
    const id = await claim(client, 'mine');
    const answer = await client.delete('/sandboxpools/mine');
    expect(answer.status).to.equal(200);
    expect(bodyOf(answer)).to.deep.equal({
      name: 'mine',
      namespace: 'default',
      status: 'Deleting',
    });
    await gone('mine');
    expect((await client.get('/sandboxes?phase=Idle&poolName=mine')).json.total).to.equal(0);
    expect((await client.get(`/sandboxes/${id}`)).json.sandbox).to.include({
      status: 'Running',
      poolName: 'mine',
    });
    expect(
      (await client.post(`/sandboxes/${id}/exec`, { command: 'echo here' })).json.stdout,
    ).to.equal('here\n');
    expect((await create('mine', { replicas: 1 })).status).to.equal(201);
    await stocked(client, 1, 'mine');
    expect(
      await poolStatus(client, 'mine'),
      "the old pool's sandbox is not the new one's",
    ).to.include({ runningReplicas: 0 });
  });

  it('DELETE with force ends the running ones too', async () => {
    await create('mine', { replicas: 2 });
    const id = await claim(client, 'mine');
    expect((await client.delete('/sandboxpools/mine?force=true')).json).to.include({
      status: 'Deleting',
    });
    await gone('mine');
    expect((await client.get(`/sandboxes/${id}`)).status).to.equal(404);
    expect(await finished(client, id)).to.include({ endReason: 'force-deleted', poolName: 'mine' });
    expect((await client.delete('/sandboxpools/default?force=maybe')).status).to.equal(400);
  });

  it('claims while the pool is being deleted are served, refused with 409, or find it gone', async () => {
    await create('mine', { replicas: 12 });
    await stocked(client, 12, 'mine');
    const claims = Array.from({ length: 24 }, (_, at) =>
      at === 6
        ? client.delete('/sandboxpools/mine')
        : client.post('/sandboxes', { poolName: 'mine' }),
    );
    const refused = (await Promise.all(claims)).filter(({ status }) => status >= 400);
    for (const answer of refused) {
      expect(answer.status, answer.text).to.be.oneOf([404, 409, 429]);
      if (answer.status === 409)
        expect(bodyOf(answer)).to.deep.equal({
          error: 'pool is being deleted',
          errorCode: 'CONFLICT',
        });
    }
    await gone('mine');
    const { json } = await client.get('/sandboxes?phase=Running&poolName=mine');
    expect(json.total, 'what was handed out runs on').to.equal(24 - 1 - refused.length);
  });

  it('changes and deletions that come at once are each carried out, refused with 409, or find it gone', async () => {
    for (let round = 0; round < 5; round++) {
      await create('mine', { replicas: round % 3 });
      const answers = await Promise.all(
        Array.from({ length: 24 }, (_, at) =>
          at % 3 === 0
            ? client.put('/sandboxpools/mine', { replicas: at % 4 })
            : client.delete(`/sandboxpools/mine${at % 3 === 1 ? '' : '?force=true'}`),
        ),
      );
      for (const answer of answers) expect(answer.status, answer.text).to.be.oneOf([200, 404, 409]);
      await gone('mine');
    }
  });
});
