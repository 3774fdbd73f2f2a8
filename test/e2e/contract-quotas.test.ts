import { expect } from 'chai';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { claim, clear, stocked } from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

/**
 * Of each user: 3 sandboxes, 2 pools, 12 replicas. The tenant's default pool takes one pool and 8
 * replicas of them.
 */
const LIMITS = line`--quotas-sandboxes 3 --quotas-pools 2 --quotas-replicas 12
  --default-pool-replicas 8 --compatible-api-listen 127.0.0.1:0`;

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
    await stocked(client, 8);
  });

  it('exactly 3 of 64 claims at once over both ports succeed, and SDKs get a retry time', async () => {
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
        message: 'scale failed: the quota of 3 sandboxes is used up; delete a sandbox first',
      });
      expect([status, headers['retry-after']]).to.deep.equal([429, '30']);
    }
  });

  it('usage survives a kill -9 of the daemon', async function () {
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
});
