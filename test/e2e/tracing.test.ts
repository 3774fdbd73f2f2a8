import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';
import { TraceCollector } from '../support/fakes/trace-collector.ts';
import { line } from '../support/harness/line.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

describe('a daemon with a collector of traces', function () {
  let collector: TraceCollector;
  let daemon: DaemonUnderTest;

  before(async () => {
    collector = await TraceCollector.start();
    process.env['SANDPOOL_TRACING_HEADERS'] = 'authorization=Bearer%20abc';
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 1
      --tracing-endpoint ${collector.endpoint} --tracing-compression gzip
      --tracing-resource-attributes deployment.environment=test`).finally(() => {
      delete process.env['SANDPOOL_TRACING_HEADERS'];
    });
  });

  after(async () => {
    await daemon.dispose();
    await collector.stop();
  });

  it("reports a claim and its steps in the caller's trace", async () => {
    const client = daemon.client();
    await stocked(client, 1);

    const answer = await client.post(
      '/sandboxes',
      { poolName: 'default' },
      { headers: { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` } },
    );

    expect(answer.status).to.equal(201);
    const ofTrace = () => collector.spans.filter(({ traceId }) => traceId === TRACE);
    const claim = await within('the claim as a span', () =>
      ofTrace().find(({ name }) => name === 'POST /sandboxes'),
    );
    expect(answer.headers['traceresponse']).to.equal(`00-${TRACE}-${claim.spanId}-01`);
    expect(
      ofTrace()
        .filter(({ parentSpanId }) => parentSpanId === claim.spanId)
        .map(({ name }) => name),
    ).to.deep.equal(['find', 'admit', 'write']);
    expect(collector.posts[0]?.headers).to.include({
      authorization: 'Bearer abc',
      'content-encoding': 'gzip',
    });
    expect(collector.resources[0]).to.deep.include.members([
      { key: 'service.name', value: { stringValue: 'sandpool' } },
      { key: 'deployment.environment', value: { stringValue: 'test' } },
    ]);
    expect(collector.posts.map(({ text }) => text).join()).not.to.contain(daemon.tenantKey);
  });
});
