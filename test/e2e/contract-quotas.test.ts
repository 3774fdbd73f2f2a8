import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import {
  aTenant,
  claim,
  clear,
  giveBack,
  poolStatus,
  stocked,
} from '../support/harness/on-a-daemon.ts';

/**
 * Of each user: 3 sandboxes, 2 pools, 12 replicas. The tenant's default pool takes one pool and 8
 * replicas of them.
 */
const LIMITS = [
  '--quotas-sandboxes',
  '3',
  '--quotas-pools',
  '2',
  '--quotas-replicas',
  '12',
  '--default-pool-replicas',
  '8',
  '--compatible-api-listen',
  '127.0.0.1:0',
];

describe('the contract: quotas', () => {
  let daemon: DaemonUnderTest;
  let client: HttpClient;

  before(async function () {
    daemon = await DaemonUnderTest.start(LIMITS);
  });

  after(async function () {
    await daemon.dispose();
  });

  beforeEach(async () => {
    client = daemon.client();
    await clear(client);
    for (const { name } of (await client.get('/sandboxpools')).json.items ?? []) {
      if (name !== 'default') await client.delete(`/sandboxpools/${String(name)}?force=true`);
    }
    await within(
      'one pool is left',
      async () => (await client.get('/sandboxpools')).json.total === 1 || undefined,
    );
    await client.put('/sandboxpools/default', { replicas: 8 });
    await stocked(client, 8);
  });

  it('of 64 claims at once at a limit of 3 exactly 3 succeed, and the rest are told so', async () => {
    const answers = await Promise.all(
      Array.from({ length: 64 }, () => client.post('/sandboxes', { poolName: 'default' })),
    );
    const granted = answers.filter(({ status }) => status === 201);
    expect(granted).to.have.length(3);
    expect(new Set(granted.map(({ json }) => json.sandbox?.['sandboxId'])).size).to.equal(3);
    for (const { status, json, headers } of answers.filter((answer) => answer.status !== 201)) {
      expect(status).to.equal(429);
      expect(json).to.include({ error: 'scale failed', errorCode: 'QUOTA_EXCEEDED' });
      const { errCode, message, retryAfter, ...rest } = json.detail ?? {};
      expect(rest).to.deep.equal({});
      expect(errCode).to.equal('QUOTA_EXCEEDED');
      expect(message).to.be.a('string').that.is.not.empty;
      expect(retryAfter).to.be.a('number').that.satisfies(Number.isInteger);
      expect(headers['retry-after']).to.equal(String(retryAfter));
    }
    expect(await poolStatus(client)).to.include({ idleReplicas: 5, runningReplicas: 3 });
  });

  it('of 64 claims at once over both ports exactly 3 succeed, and the SDKs are told when to come again', async () => {
    const sdk = daemon.compatibleClient();
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, at) =>
        at % 2 === 0
          ? client.post('/sandboxes', { poolName: 'default' })
          : sdk.post('/v2/sandboxes', { templateID: 'base' }),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).to.have.length(3);
    for (const { status, text, headers } of answers.filter((_, at) => at % 2 === 1)) {
      if (status === 201) continue;
      expect(JSON.parse(text)).to.deep.equal({
        code: 429,
        message: 'scale failed: the quota of 3 sandboxes is used up; give one back first',
      });
      expect([status, headers['retry-after']]).to.deep.equal([429, '30']);
    }
  });

  it('one given back makes room for one', async () => {
    const ids = [await claim(client), await claim(client), await claim(client)];
    expect((await client.post('/sandboxes', { poolName: 'default' })).json.errorCode).to.equal(
      'QUOTA_EXCEEDED',
    );
    await giveBack(client, ids[0] ?? '');
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => client.post('/sandboxes', { poolName: 'default' })),
    );
    expect(answers.filter(({ status }) => status === 201)).to.have.length(1);
  });

  it("counts a user's sandboxes, whatever key asks and from whatever pool; others have their own", async () => {
    const {
      json: { apiKey = '' },
    } = await client.post('/api-keys', {});
    const second = daemon.client(apiKey);
    await client.post('/sandboxpools', { name: 'more', templateName: 'default', replicas: 2 });
    await stocked(client, 2, 'more');
    await claim(client);
    await claim(second, 'more');
    await claim(second);
    for (const [as, poolName] of [
      [client, 'default'],
      [second, 'more'],
    ] as const) {
      expect((await as.post('/sandboxes', { poolName })).json.errorCode).to.equal('QUOTA_EXCEEDED');
    }
    const other = await aTenant(daemon, 'default', 'judy');
    expect(
      (await other.post('/sandboxpools', { name: 'judys', templateName: 'default', replicas: 1 }))
        .status,
    ).to.equal(201);
    await claim(other, 'judys');
    await other.delete('/sandboxpools/judys?force=true');
  });

  it('holds after a kill -9 of the daemon', async function () {
    await Promise.all([claim(client), claim(client), claim(client)]);
    await daemon.kill();
    await daemon.start();
    const again = daemon.client();
    const answer = await again.post('/sandboxes', { poolName: 'default' });
    expect(answer.json.errorCode, answer.text).to.equal('QUOTA_EXCEEDED');
    expect(
      (await again.post('/sandboxpools', { name: 'b', templateName: 'default', replicas: 4 }))
        .status,
    ).to.equal(201);
    expect(
      (await again.post('/sandboxpools', { name: 'c', templateName: 'default', replicas: 0 })).json
        .errorCode,
    ).to.equal('QUOTA_EXCEEDED');
  });

  it('a pool too many is 429 with the errCode alone and the delay in the header; a deleted one makes room', async () => {
    expect(
      (await client.post('/sandboxpools', { name: 'second', templateName: 'default', replicas: 0 }))
        .status,
    ).to.equal(201);
    const third = await client.post('/sandboxpools', {
      name: 'third',
      templateName: 'default',
      replicas: 0,
    });
    expect(third.status).to.equal(429);
    expect(third.headers['retry-after']).to.match(/^[1-9]\d*$/);
    expect(JSON.parse(third.text)).to.deep.equal({
      error: 'scale failed',
      errorCode: 'QUOTA_EXCEEDED',
      detail: { errCode: 'QUOTA_EXCEEDED' },
    });
    expect((await client.get('/sandboxpools/third')).status).to.equal(404);
    await client.delete('/sandboxpools/second');
    await within(
      'it is gone',
      async () => (await client.get('/sandboxpools/second')).status === 404 || undefined,
    );
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        client.post('/sandboxpools', { name: `p${at}`, templateName: 'default', replicas: 0 }),
      ),
    );
    expect(made.filter(({ status }) => status === 201)).to.have.length(1);
  });

  it('replicas beyond the quota are refused on creation and on change, and change nothing', async () => {
    const large = await client.post('/sandboxpools', {
      name: 'large',
      templateName: 'default',
      replicas: 5,
    });
    expect(large.status).to.equal(429);
    expect(JSON.parse(large.text)).to.deep.equal({
      error: 'scale failed',
      errorCode: 'QUOTA_EXCEEDED',
      detail: { errCode: 'QUOTA_EXCEEDED' },
    });
    const put = await client.put('/sandboxpools/default', { replicas: 13 });
    expect(put.status).to.equal(429);
    expect(put.json.errorCode).to.equal('QUOTA_EXCEEDED');
    expect((await client.get('/sandboxpools/default')).json.template?.['spec']).to.deep.equal({
      replicas: 8,
    });
    expect((await client.put('/sandboxpools/default', { replicas: 12 })).status).to.equal(200);
    expect((await client.put('/sandboxpools/default', { replicas: 8 })).status).to.equal(200);
    expect(
      (await client.post('/sandboxpools', { name: 'fits', templateName: 'default', replicas: 4 }))
        .status,
    ).to.equal(201);
  });
});
