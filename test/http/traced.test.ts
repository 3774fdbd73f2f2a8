import { expect } from 'chai';
import type { TraceScope } from '../../src/contracts/tracing.ts';
import { OtelTracer } from '../../src/daemon/tracing/otel-tracer.ts';
import { eventually } from '../support/harness/eventually.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { TraceCollector } from '../support/fakes/trace-collector.ts';
import { aServer, type TestServer } from './a-server.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const TRACEPARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

describe('a request with a traceparent', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const logged = (): unknown =>
    server.log.find(({ event }) => event === 'request-answered')?.fields['traceId'];

  it('is logged under its trace, and answered without one if nothing is recorded', async () => {
    server = await aServer();

    const answer = await server.tenant.get('/quotas', { headers: { traceparent: TRACEPARENT } });

    expect(answer.status).to.equal(200);
    expect(answer.headers).to.not.have.property('traceresponse');
    await eventually(() => logged() === TRACE, 'it is logged');
  });

  it('passes its header on to other services, or a span of its own if it is recorded', async () => {
    const told: string[] = [];
    const traceScope: TraceScope = {
      within: async (trace, work) => {
        told.push(trace.call('GET pods').traceparent);
        await work();
      },
      current: () => undefined,
    };
    server = await aServer({ traceScope });
    await server.tenant.get('/quotas');
    await server.tenant.get('/quotas', { headers: { traceparent: TRACEPARENT } });
    await server.stop();
    const tracer = new OtelTracer({
      endpoint: 'http://127.0.0.1:9',
      log: quietLog,
      clock: new TestClock(),
      samplePercent: 100,
      version: '1',
      resource: {},
    });
    server = await aServer({ traceScope, tracer });
    const answer = await server.tenant.get('/quotas', { headers: { traceparent: TRACEPARENT } });
    await tracer.stop();

    expect(told[0]).to.equal(TRACEPARENT);
    expect(told[1]).to.match(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
    expect(told).to.have.length(2).and.not.include(answer.headers['traceresponse']);
  });

  it('is answered as without a traceparent if it is malformed', async () => {
    server = await aServer();

    expect(
      (await server.tenant.get('/quotas', { headers: { traceparent: `${TRACEPARENT}-more` } }))
        .status,
    ).to.equal(200);
    await eventually(
      () => server.log.some(({ event }) => event === 'request-answered'),
      'it is logged',
    );
    expect(logged()).to.equal(undefined);
  });

  it('becomes a span if a collector is configured, by route template', async () => {
    const collector = await TraceCollector.start();
    const tracer = new OtelTracer({
      endpoint: collector.endpoint,
      log: quietLog,
      clock: new TestClock(),
      samplePercent: 0,
      version: '1',
      resource: {},
      delayMs: 1,
    });
    server = await aServer({ tracer });
    try {
      const answer = await server.tenant.get('/sandboxes/0193e0c5-5c5e-7000-8000-000000000000', {
        headers: { traceparent: TRACEPARENT },
      });
      const own = await server.tenant.get('/quotas');
      await eventually(() => collector.spans.length === 1, 'the span is there');
      const [span] = collector.spans;

      expect(answer.headers['traceresponse']).to.equal(`00-${TRACE}-${span?.spanId}-01`);
      expect(own.headers['traceresponse']).to.match(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      expect(span).to.deep.include({
        traceId: TRACE,
        parentSpanId: '00f067aa0ba902b7',
        name: 'GET /sandboxes/{sandboxId}',
      });
      expect(span?.attributes).to.deep.include.members([
        { key: 'http.response.status_code', value: { intValue: 404 } },
        { key: 'error.type', value: { stringValue: 'SANDBOX_NOT_FOUND' } },
        { key: 'sandpool.request_id', value: { stringValue: answer.headers['x-request-id'] } },
      ]);
      expect(collector.posts.map(({ text }) => text).join()).not.to.contain(server.tenant.key);
    } finally {
      await tracer.stop();
      await collector.stop();
    }
  });
});
