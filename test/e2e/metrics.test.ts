import { expect } from 'chai';
import { METRICS } from '../../src/contracts/metric-catalogue.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { seriesOf, type Exposition } from '../support/harness/exposition.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { claim, stocked } from '../support/harness/on-a-daemon.ts';

describe('metrics of a real daemon', function () {
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  const told = async (): Promise<Exposition> => seriesOf(await daemon.metrics());

  before(async () => {
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '2']);
    client = daemon.client();
    await stocked(client, 2);
  });

  after(async () => {
    await daemon.dispose();
  });

  it('include every metric of the catalogue', async () => {
    const text = await daemon.metrics();

    expect(Object.keys(METRICS).filter((name) => !text.includes(`# TYPE ${name} `))).to.deep.equal(
      [],
    );
  });

  it('show the same pool numbers as GET /sandboxpools', async () => {
    const series = await told();

    expect(
      series.value('sandpool_pool_instances', {
        pool_namespace: 'default',
        pool: 'default',
        state: 'idle',
      }),
    ).to.equal(2);
    expect(series.value('sandpool_pool_replicas', { pool: 'default' })).to.equal(2);
    expect(series.value('sandpool_pools', { phase: 'Ready' })).to.equal(1);
    expect(series.value('sandpool_ready')).to.equal(1);
    expect(series.value('sandpool_shards_led')).to.equal(16);
  });

  it('count and time claims by outcome', async () => {
    await claim(client);
    await client.post('/sandboxes', { poolName: 'nowhere' });

    const series = await told();
    expect(series.value('sandpool_claims_total', { result: 'claimed' })).to.equal(1);
    expect(series.value('sandpool_claims_total', { result: 'refused' })).to.equal(1);
    expect(series.value('sandpool_claim_seconds_count', { result: 'claimed' })).to.equal(1);
    for (const step of ['find', 'admit', 'write'])
      expect(series.value('sandpool_claim_step_seconds_count', { step }), step).to.be.greaterThan(
        0,
      );
    expect(
      series.value('sandpool_driver_calls_total', { operation: 'claim', outcome: 'done' }),
    ).to.equal(1);
    expect(series.value('sandpool_start_seconds_count')).to.be.greaterThan(1);
  });

  it('count requests by route template, without series for invented paths or methods', async () => {
    await client.get('/sandboxes/00000000-0000-4000-8000-000000000000');
    await client.get('/made-up/by-a-client');
    await within(
      'the answer counts',
      async () =>
        ((await told()).value('sandpool_http_requests_total', { route: 'none', status: '404' }) ??
          0) > 0 || undefined,
    );

    const text = await daemon.metrics();
    expect(
      seriesOf(text).value('sandpool_http_requests_total', {
        method: 'GET',
        route: '/sandboxes/{sandboxId}',
        status: '404',
      }),
    ).to.equal(1);
    expect(text).not.to.contain('made-up');
    expect(text).not.to.contain('00000000-0000-4000-8000-000000000000');
  });

  it('are served on a separate listener only', async () => {
    expect((await client.get('/metrics')).status).to.equal(404);
  });
});
