import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { interpreterOfChart } from '../../script/code-interpreter.ts';
import { realNodeImage } from '../../local-cluster/real-node.ts';
import { renderDefinition } from '../../src/model/pools/render-definition.ts';
import type { InstanceDefinition, TemplateSpec } from '../../src/model/templates/template.ts';
import type { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { onRealPods, realOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';

const VALUES = 'deploy/helm/sandpool/values.yaml';

/** With probes that wait for a machine that is busy. */
const patient = (definition: InstanceDefinition): InstanceDefinition => ({
  ...definition,
  endpoints: Object.fromEntries(
    Object.entries(definition.endpoints ?? {}).map(([name, { readinessProbe, ...endpoint }]) => [
      name,
      {
        ...endpoint,
        readinessProbe: readinessProbe
          ? { ...readinessProbe, timeoutMs: NEVER_COMES_MS }
          : undefined,
      },
    ]),
  ),
});

describe('a sandbox of a real node, like on one machine', function () {
  const onPods = onRealPods(onTheRealNode());
  let pods: PodDriver;
  before(() => {
    pods = onPods();
  });

  const printed = async (id: string, script: string): Promise<string> =>
    String(
      (
        await pods.driver.exec(
          id,
          { argv: ['sh', '-c', script], timeoutMs: NEVER_COMES_MS, outputLimit: 4_000 },
          new AbortController().signal,
        )
      ).stdout,
    );

  it('has LANG, and a pid 1 that reaps orphans', async () => {
    const { id } = await pods.claimed(realOrder(pods));
    expect(await printed(id, 'echo "$LANG"')).to.equal('C.UTF-8\n');
    // The outer shell is gone before its child ends.
    await printed(id, '(sh -c "sleep 0.2; exit 3" >/dev/null 2>&1 &)');
    await eventually(
      async () => !(await printed(id, 'cat /proc/[0-9]*/stat 2>/dev/null')).includes(') Z '),
      'no zombie stays',
    );
    expect(await printed(id, 'cat /proc/1/comm')).to.not.contain('sleep');
  });

  it("is ready with the chart's template web, by a kubelet's probe and by an endpoint", async () => {
    const { sandboxTemplates } = parse(readFileSync(VALUES, 'utf8')) as {
      sandboxTemplates: Readonly<Record<string, TemplateSpec>>;
    };
    const definition = patient(renderDefinition(sandboxTemplates['web'] ?? { containers: [] }));
    const containers = definition.containers.map((container) => ({
      ...container,
      image: realNodeImage('tools'),
      requests: { cpuCores: 0.01, memoryBytes: 2 ** 20 },
    }));
    const order = realOrder(pods);
    const { id } = await pods.claimed({ ...order, definition: { ...definition, containers } });

    expect(await pods.driver.probe(id)).to.deep.equal([{ endpoint: 'web' }]);
    const stream = await pods.driver.dial(id, 8_000, AbortSignal.timeout(NEVER_COMES_MS));
    stream.write('GET / HTTP/1.0\r\n\r\n');
    let page = '';
    for await (const chunk of stream) page += String(chunk);
    expect(page).to.contain('Hello from a sandbox');
  });

  it("runs code with the chart's template code-interpreter-v1, on the loopback of the Pod", async () => {
    const { sandboxTemplates } = parse(readFileSync(VALUES, 'utf8')) as {
      sandboxTemplates: Readonly<Record<string, TemplateSpec>>;
    };
    const definition = renderDefinition(
      sandboxTemplates['code-interpreter-v1'] ?? { containers: [] },
    );
    const containers = definition.containers.map((container) => ({
      ...container,
      argv: interpreterOfChart(),
      given: { command: interpreterOfChart() },
      image: realNodeImage('tools'),
      requests: { cpuCores: 0.01, memoryBytes: 2 ** 20 },
    }));
    const order = realOrder(pods);
    const { id } = await pods.claimed({ ...order, definition: { ...definition, containers } });

    const body = JSON.stringify({ code: 'x = 41\nx + 1' });
    const stream = await pods.driver.dial(id, 49_999, AbortSignal.timeout(NEVER_COMES_MS));
    stream.write(
      `POST /execute HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    let said = '';
    for await (const chunk of stream) said += String(chunk);
    expect(said).to.contain('"text": "42"').and.to.contain('end_of_execution');
  });
});
