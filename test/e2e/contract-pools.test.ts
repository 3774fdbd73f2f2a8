import { expect } from 'chai';
import { within } from '../support/harness/a-daemon.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { aTenant, bodyOf, clear, poolStatus, stocked } from '../support/harness/on-a-daemon.ts';
import { onTheSharedDaemon } from '../support/harness/shared-daemon.ts';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

type Pool = Readonly<Record<string, unknown>>;

describe('the contract: pools', () => {
  const daemon = onTheSharedDaemon();
  let client: HttpClient;

  before(async () => {
    client = await aTenant(daemon(), 'makers', 'ann');
  });

  afterEach(async () => {
    await clear(client);
    await client.delete('/sandboxpools/mine?force=true');
    await gone('mine');
  });

  const create = (name: string, more: object = {}): Promise<HttpAnswer> =>
    client.post('/sandboxpools', { name, templateName: 'default', ...more });

  const gone = (name: string): Promise<unknown> =>
    within(
      `${name} is gone`,
      async () => (await client.get(`/sandboxpools/${name}`)).status === 404 || undefined,
    );

  it('POST returns 201 with the pool in the envelope `template`', async () => {
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
      namespace: 'makers',
      cpu: '1',
      memory: '256Mi',
      containerImages: { main: 'host' },
      network: 'none',
      ports: {},
      team: 'makers',
      user: 'ann',
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

  it('claims during the deletion of the pool succeed, or get 409 or 404', async () => {
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

  it('simultaneous changes and deletions each succeed, or get 409 or 404', async () => {
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
