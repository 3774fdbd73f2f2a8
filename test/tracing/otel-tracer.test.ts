import { expect } from 'chai';
import type { Log } from '../../src/contracts/log.ts';
import { OtelTracer, type OtelTracerDeps } from '../../src/daemon/tracing/otel-tracer.ts';
import { eventually } from '../support/harness/eventually.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { TraceCollector } from '../support/fakes/trace-collector.ts';

const PARENT = {
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  parentId: '00f067aa0ba902b7',
  sampled: true,
};

describe('OtelTracer', () => {
  let collector: TraceCollector;
  const tracers: OtelTracer[] = [];

  const clock = new TestClock();

  const aTracer = (part: Partial<OtelTracerDeps> = {}): OtelTracer => {
    const tracer = new OtelTracer({
      endpoint: collector.endpoint,
      log: quietLog,
      clock,
      samplePercent: 100,
      version: '1.2.3',
      resource: { 'service.name': 'sandpool', 'service.instance.id': 'r1' },
      delayMs: 1,
      ...part,
    });
    tracers.push(tracer);
    return tracer;
  };

  beforeEach(async () => {
    collector = await TraceCollector.start();
  });
  afterEach(async () => {
    await Promise.all(tracers.splice(0).map((tracer) => tracer.stop()));
    await collector.stop();
  });

  it("sends a request as a span of its client's trace, with its steps below", async () => {
    const span = aTracer().begin(PARENT);
    const now = performance.now();
    span.step('admit', now, now + 2.5);
    span.end(
      'POST /sandboxes',
      { 'http.response.status_code': 201, 'http.route': '/sandboxes' },
      'good',
    );

    await eventually(() => collector.spans.length === 2, 'both are there');
    const whole = collector.spans.find(({ kind }) => kind === 2);
    const step = collector.spans.find(({ kind }) => kind === 1);
    expect(whole).to.deep.include({
      traceId: PARENT.traceId,
      parentSpanId: PARENT.parentId,
      spanId: span.spanId,
      name: 'POST /sandboxes',
      kind: 2,
      status: { code: 0 },
    });
    expect(whole?.attributes).to.have.deep.members([
      { key: 'http.response.status_code', value: { intValue: 201 } },
      { key: 'http.route', value: { stringValue: '/sandboxes' } },
    ]);
    expect(step).to.deep.include({
      traceId: PARENT.traceId,
      parentSpanId: span.spanId,
      name: 'admit',
      kind: 1,
    });
    expect(
      Number(BigInt(step?.endTimeUnixNano ?? 0) - BigInt(step?.startTimeUnixNano ?? 0)),
    ).to.be.closeTo(2_500_000, 5_000);
    expect(Number(BigInt(whole?.startTimeUnixNano ?? 0) / 1_000_000n)).to.be.closeTo(
      clock.now(),
      1,
    );
    expect(collector.resources[0]).to.deep.include.members([
      { key: 'service.name', value: { stringValue: 'sandpool' } },
      { key: 'service.instance.id', value: { stringValue: 'r1' } },
      { key: 'telemetry.sdk.name', value: { stringValue: 'opentelemetry' } },
    ]);
    expect(collector.posts[0]).to.include({ path: '/v1/traces', type: 'application/json' });
  });

  it('sends a call to another service as a span below the request, with the id that it forwards', async () => {
    const span = aTracer().begin(PARENT);
    const [good, failed] = [span.call('GET pods'), span.call('PUT sandboxes')];
    good.ended('good', {});
    span.end('POST /sandboxes', {}, 'good');
    // its request was answered meanwhile
    failed.ended('failed', { 'http.response.status_code': 409 });

    await eventually(() => collector.spans.length === 3, 'all are there');
    const calls = collector.spans.filter(({ kind }) => kind === 3);
    expect(
      calls.map(({ name, kind, parentSpanId, status: { code } }) => [
        name,
        kind,
        parentSpanId,
        code,
      ]),
    ).to.deep.equal([
      ['GET pods', 3, span.spanId, 0],
      ['PUT sandboxes', 3, span.spanId, 2],
    ]);
    expect([good, failed].map(({ traceparent }) => traceparent)).to.deep.equal(
      calls.map(({ spanId }) => `00-${PARENT.traceId}-${spanId}-01`),
    );
    expect(calls[1]?.attributes).to.deep.equal([
      { key: 'http.response.status_code', value: { intValue: 409 } },
    ]);
  });

  it('sends the configured headers, and compresses if configured', async () => {
    const tracer = aTracer({ headers: { authorization: 'Bearer abc' }, compression: 'gzip' });
    tracer.begin(undefined).end('GET /quotas', {}, 'good');

    await eventually(() => collector.spans.length === 1, 'it is there');
    expect(collector.posts[0]?.headers).to.include({
      authorization: 'Bearer abc',
      'content-encoding': 'gzip',
    });
  });

  it('sends at most 32 such calls', async () => {
    const span = aTracer().begin(PARENT);
    for (let n = 0; n < 100; n += 1) span.call('GET pods').ended('good', {});
    span.end('POST /sandboxes', {}, 'good');

    await eventually(() => collector.spans.length > 0, 'it is there');
    expect(collector.spans).to.have.length(33);
  });

  it('starts its own trace for a client without one', async () => {
    const span = aTracer().begin(undefined);
    span.end('GET /quotas', {}, 'failed');

    await eventually(() => collector.spans.length === 1, 'it is there');
    expect(span.traceId).to.match(/^[0-9a-f]{32}$/);
    expect(span.spanId).to.match(/^[0-9a-f]{16}$/);
    expect(collector.spans[0]).to.not.have.property('parentSpanId');
    expect(collector.spans[0]?.status).to.deep.equal({ code: 2 });
  });

  it('records no request that the client does not record or the sampling omits', async () => {
    const tracer = aTracer({ samplePercent: 0 });
    for (const span of [tracer.begin({ ...PARENT, sampled: false }), tracer.begin(undefined)]) {
      expect(span.sampled).to.equal(false);
      expect(span.call('GET pods').traceparent).to.equal(`00-${span.traceId}-${span.spanId}-00`);
      span.end('GET /quotas', {}, 'good');
    }
    tracer.begin(PARENT).end('POST /sandboxes', {}, 'good');

    await tracer.stop();
    expect(collector.spans.map(({ name }) => name)).to.deep.equal(['POST /sandboxes']);
  });

  it('sends the rest when it stops', async () => {
    const tracer = aTracer({ delayMs: 60_000 });
    tracer.begin(undefined).end('GET /quotas', {}, 'good');

    await tracer.stop();

    expect(collector.spans).to.have.length(1);
  });

  it('reports once that the collector refuses spans, drops them, and reports the recovery once', async () => {
    const said: string[] = [];
    const log: Log = {
      ...quietLog,
      warn: (_fields, event) => {
        said.push(event);
      },
      info: (_fields, event) => {
        said.push(event);
      },
    };
    const tracer = aTracer({ log });
    const told = async (): Promise<void> => {
      const before = collector.posts.length;
      tracer.begin(undefined).end('GET /quotas', {}, 'good');
      await eventually(() => collector.posts.length > before, 'it was told');
    };

    collector.status = 500;
    await told();
    await told();
    await eventually(() => said.length === 1, 'it is said');
    collector.status = 200;
    await told();
    await eventually(() => said.length === 2, 'and that it is over');

    expect(said).to.deep.equal(['traces-not-accepted', 'traces-accepted-again']);
  });

  it('buffers a bounded number during an outage of the collector, and delays no requests', async () => {
    const tracer = aTracer({ delayMs: 60_000, endpoint: 'http://127.0.0.1:1' });

    for (let i = 0; i < 20_000; i++) tracer.begin(undefined).end('GET /quotas', {}, 'good');

    await tracer.stop();
    expect(collector.posts).to.have.length(0);
  });
});
