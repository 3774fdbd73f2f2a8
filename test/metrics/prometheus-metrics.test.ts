import { expect } from 'chai';
import { METRICS, type MetricSpec } from '../../src/contracts/metric-catalogue.ts';
import { MOST_CLUSTERS } from '../../src/model/fleet/cluster.ts';
import { PrometheusMetrics } from '../../src/daemon/metrics/prometheus-metrics.ts';
import { seriesOf } from '../support/harness/exposition.ts';

describe('PrometheusMetrics', () => {
  it('counts by labels', async () => {
    const metrics = new PrometheusMetrics();

    metrics.count('sandpool_claims_total', { result: 'claimed' });
    metrics.count('sandpool_claims_total', { result: 'claimed' }, 2);
    metrics.count('sandpool_claims_total', { result: 'quota' });

    const series = seriesOf(await metrics.text());
    expect(series.value('sandpool_claims_total', { result: 'claimed' })).to.equal(3);
    expect(series.value('sandpool_claims_total', { result: 'quota' })).to.equal(1);
  });

  it('lists the outcomes of claims and starts in advance, so that the first is an increase', async () => {
    const series = seriesOf(await new PrometheusMetrics().text());

    for (const result of [
      'claimed',
      'exhausted',
      'quota',
      'refused',
      'unavailable',
      'gone',
      'failed',
    ])
      expect(series.value('sandpool_claims_total', { result }), result).to.equal(0);
    for (const cause of ['refused', 'died', 'timeout'])
      expect(series.value('sandpool_start_failures_total', { cause }), cause).to.equal(0);
  });

  it('sorts observations into buckets', async () => {
    const metrics = new PrometheusMetrics();

    metrics.observe('sandpool_claim_seconds', { result: 'claimed' }, 0.004);
    metrics.observe('sandpool_claim_seconds', { result: 'claimed' }, 0.2);

    const series = seriesOf(await metrics.text());
    expect(
      series.value('sandpool_claim_seconds_bucket', { result: 'claimed', le: '0.005' }),
    ).to.equal(1);
    expect(
      series.value('sandpool_claim_seconds_bucket', { result: 'claimed', le: '0.25' }),
    ).to.equal(2);
    expect(series.value('sandpool_claim_seconds_count', { result: 'claimed' })).to.equal(2);
  });

  it('reads current values each time, and drops missing ones', async () => {
    const metrics = new PrometheusMetrics();
    let pools = [
      { labels: { phase: 'Ready' }, value: 2 },
      { labels: { phase: 'Failed' }, value: 1 },
    ];
    metrics.read('sandpool_pools', () => pools);
    await metrics.text();

    pools = [{ labels: { phase: 'Ready' }, value: 5 }];

    const series = seriesOf(await metrics.text());
    expect(series.value('sandpool_pools', { phase: 'Ready' })).to.equal(5);
    expect(series.value('sandpool_pools', { phase: 'Failed' })).to.equal(undefined);
  });

  it('omits values without a reader, such as a missing certificate', async () => {
    const metrics = new PrometheusMetrics();
    metrics.read('sandpool_ready', () => [{ labels: {}, value: 0 }]);

    const series = seriesOf(await metrics.text());
    expect(series.value('sandpool_ready')).to.equal(0);
    expect(series.names).not.to.include('sandpool_certificate_seconds_left');
    const ofFleet = /^sandpool_(cluster|links|manager)_/;
    expect(series.names.filter((name) => ofFleet.test(name))).to.deep.equal([]);
  });

  it('adds up the values of several readers of one metric, including counters', async () => {
    const metrics = new PrometheusMetrics();
    metrics.read('sandpool_fenced_writes_total', () => [{ labels: {}, value: 3 }]);
    metrics.read('sandpool_fenced_writes_total', () => [{ labels: {}, value: 4 }]);
    await metrics.text();

    expect(seriesOf(await metrics.text()).value('sandpool_fenced_writes_total', {})).to.equal(7);
  });

  it('shows a read counter only for current labels, however many there were', async () => {
    const metrics = new PrometheusMetrics();
    let round = 0;
    metrics.read('sandpool_links_refused_total', () => [
      { labels: { reason: `r${round}` }, value: 1 },
    ]);
    for (; round < METRICS.sandpool_links_refused_total.most + 5; round++)
      expect(
        seriesOf(await metrics.text())
          .named('sandpool_links_refused_total')
          .map(({ labels }) => labels),
      ).to.deep.equal([{ reason: `r${round}` }]);
  });

  it('counts series beyond the limit as other', async () => {
    const metrics = new PrometheusMetrics();
    const { most } = METRICS.sandpool_conflicts_total;

    for (let i = 0; i < most + 5; i++)
      metrics.count('sandpool_conflicts_total', { operation: `r${i}` });

    const series = seriesOf(await metrics.text());
    expect(series.named('sandpool_conflicts_total')).to.have.length(most + 1);
    expect(series.value('sandpool_conflicts_total', { operation: 'other' })).to.equal(5);
  });

  it('keeps a status within other, so that no failure is hidden', async () => {
    const metrics = new PrometheusMetrics();
    for (let i = 0; i < METRICS.sandpool_http_requests_total.most; i++)
      metrics.count('sandpool_http_requests_total', {
        method: 'GET',
        route: `r${i}`,
        status: '401',
      });
    metrics.count('sandpool_http_requests_total', {
      method: 'POST',
      route: '/sandboxes',
      status: '503',
    });

    expect(
      seriesOf(await metrics.text()).value('sandpool_http_requests_total', {
        method: 'other',
        route: 'other',
        status: '503',
      }),
    ).to.equal(1);
  });

  it('writes any label in full', async () => {
    const metrics = new PrometheusMetrics();

    metrics.count('sandpool_claims_total', { result: 'a"b\\c\nd' });

    expect(await metrics.text()).to.contain('sandpool_claims_total{result="a\\"b\\\\c\\nd"} 1');
  });

  it('includes metrics of Node and the process', async () => {
    const names = seriesOf(await new PrometheusMetrics().text()).names;

    expect(names).to.include.members([
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
      'nodejs_heap_size_used_bytes',
    ]);
  });
});

describe('the catalogue of metrics', () => {
  const all = Object.entries<MetricSpec>(METRICS);

  it("uses names that follow Prometheus's conventions", () => {
    for (const [name, { kind, buckets }] of all) {
      expect(name).to.match(/^sandpool_[a-z_]+$/);
      expect(name.endsWith('_total'), name).to.equal(kind === 'counter');
      if (kind === 'histogram') expect(name).to.match(/_seconds$/);
      expect(buckets !== undefined, name).to.equal(kind === 'histogram');
    }
  });

  it('identifies no user, team, key or sandbox, and namespaces only for pools', () => {
    const named = all.flatMap(([name, { labels }]) =>
      labels
        .filter((label) => /tenant|user|team|owner|key|sandbox|namespace|address/.test(label))
        .map((label) => `${name} ${label}`),
    );

    expect(named.filter((each) => !/^sandpool_pool_\w+ pool_namespace$/.test(each))).to.deep.equal(
      [],
    );
  });

  it('allows 3,000 series and 6 per cluster of a fleet, and cannot exceed them', () => {
    const most = (those: typeof all): number =>
      those.reduce((sum, [, { labels, most: combinations, buckets, stays }]) => {
        const alike = buckets ? buckets.length + 3 : 1;
        const others = labels.length === 0 ? 0 : stays === undefined ? 1 : 41;
        return sum + alike * ((labels.length === 0 ? 1 : combinations) + others);
      }, 0);
    const ofClusters = all.filter(([, { labels }]) => labels.includes('cluster_id'));

    expect(most(all) - most(ofClusters)).to.be.lessThan(2_900); // and those of Node, the process
    expect(most(ofClusters) - ofClusters.length).to.equal(6 * MOST_CLUSTERS);
  });
});
