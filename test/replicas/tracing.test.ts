import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { TraceCollector } from '../support/fakes/trace-collector.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

describe('a replica with a collector of traces', function () {
  const controlPlane = onTheControlPlane();
  let collector: TraceCollector;
  const environment: Record<string, string> = {};
  before('a collector', async () => {
    collector = await TraceCollector.start();
    environment['SANDPOOL_TRACING_ENDPOINT'] = collector.endpoint;
  });
  const replicas = onReplicas(controlPlane, { count: 1, env: environment });
  after('the collector', () => collector.stop());

  it("reports the API calls of a claim in the caller's trace", async () => {
    const client = new HttpClient(
      replicas().replica(0).port,
      await replicas().tenant('red', 'rita'),
    );
    await controlPlane().apply(aPodTemplate('idle-pod'));
    await untilAnswered(201, () =>
      client.post('/sandboxpools', { name: 'traced', templateName: 'idle-pod', replicas: 1 }),
    );

    await untilAnswered(201, () =>
      client.post(
        '/sandboxes',
        { poolName: 'traced' },
        { headers: { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` } },
      ),
    );

    const ofTrace = () => collector.spans.filter(({ traceId }) => traceId === TRACE);
    const claimed = () =>
      ofTrace().find(
        ({ name, attributes }) =>
          name === 'POST /sandboxes' &&
          attributes.some(
            ({ key, value }) => key === 'http.response.status_code' && value['intValue'] === 201,
          ),
      );
    await eventually(() => claimed() !== undefined, 'the claim is a span');
    await eventually(
      () =>
        ofTrace().some(
          ({ name, kind, parentSpanId }) =>
            name === 'PUT sandboxes' && kind === 3 && parentSpanId === claimed()?.spanId,
        ),
      'what it wrote is a span below it',
    );
  });
});
