import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { v7 } from 'uuid';
import { InstanceGone } from '../../src/contracts/sandbox-driver.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import { PodDriver, type PodOrderPart } from '../support/cluster/a-pod-driver.ts';
import { execProbe, httpProbe, tcpProbe } from '../support/builders/a-probe.ts';
import { rejection } from '../support/harness/rejection.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

const PORT = 7_000;
const PATIENT = { timeoutMs: NEVER_COMES_MS };

describe('readiness probes of Pods', function () {
  const controlPlane = onTheControlPlane();
  let pods: PodDriver;
  let server: Server;
  const asked: string[] = [];

  before(async () => {
    server = createServer((request, response) => {
      asked.push(
        `${request.method} ${request.url} ${request.headers.host} ${String(request.headers['x-of-probe'])}`,
      );
      if (request.url !== '/hang') response.writeHead(request.url === '/broken' ? 503 : 204).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    await controlPlane().forward(PORT, (server.address() as AddressInfo).port);
    pods = await PodDriver.alone(controlPlane());
  });
  after(async () => {
    await pods.close();
    server.closeAllConnections();
    server.close();
  });

  const outcomes = async (part: PodOrderPart) => {
    const { id } = await pods.launched(pods.order('busybox', part));
    return { id, seen: await pods.driver.probe(id) };
  };

  it('run inside the Pod and through its ports on request', async () => {
    expect(
      (await outcomes({ container: { readinessProbe: execProbe(['true'], PATIENT) } })).seen,
    ).to.deep.equal([{}]);
    expect(
      (await outcomes({ container: { readinessProbe: tcpProbe(PORT, PATIENT) } })).seen,
    ).to.deep.equal([{}]);
    expect(
      (await outcomes({ container: { readinessProbe: httpProbe(PORT, '/ready', PATIENT) } })).seen,
    ).to.deep.equal([{}]);
    expect(asked).to.include(`GET /ready 127.0.0.1:${PORT} 1`);
  });

  it('report their results', async () => {
    const says = async (readinessProbe: ReturnType<typeof execProbe>): Promise<string> =>
      String((await outcomes({ container: { readinessProbe } })).seen[0]?.failure);
    expect(await says(execProbe(['sh', '-c', 'echo some words >&2; exit 7'], PATIENT))).to.equal(
      'sh ended with 7: some words',
    );
    expect(await says(execProbe(['sleep', '30']))).to.equal('it took longer than 1 s');
    expect(await says(httpProbe(PORT, '/broken', PATIENT))).to.equal('GET /broken answered 503');
    expect(await says(httpProbe(PORT, '/hang'))).to.equal('it took longer than 1 s');
    expect(await says(tcpProbe(PORT + 1, PATIENT))).to.contain(String(PORT + 1));
  });

  it("of an endpoint are run by the kubelet, and reported as the endpoint's", async () => {
    const { id, seen } = await outcomes({
      definition: {
        endpoints: {
          web: { port: PORT, scheme: 'http', readinessProbe: httpProbe(PORT, '/broken', PATIENT) },
        },
      },
    });
    expect(seen).to.deep.equal([{ endpoint: 'web', failure: 'GET /broken answered 503' }]);
    const probe = JSON.parse(
      await controlPlane().kubectl(
        'get',
        'pod',
        podNameOf(id),
        '-n',
        pods.namespace,
        '-o',
        'jsonpath={.spec.containers[0].readinessProbe}',
      ),
    ) as { readonly httpGet: object };
    expect(probe.httpGet)
      .to.deep.include({ port: PORT, path: '/broken' })
      .and.to.not.have.property('host');
  });

  it('never go to an address, whatever IP address the Pod claims', async () => {
    let wasAsked = false;
    const elsewhere = createServer(() => {
      wasAsked = true;
    }).listen(0, '127.0.0.1');
    await once(elsewhere, 'listening');
    const { port } = elsewhere.address() as AddressInfo;
    const { id, seen } = await outcomes({ container: { readinessProbe: httpProbe(port, '/') } });
    expect(seen[0]?.failure).to.be.a('string');
    await controlPlane().patch(
      ['pod', podNameOf(id), '-n', pods.namespace, '--subresource=status'],
      { status: { podIP: '127.0.0.1', podIPs: [{ ip: '127.0.0.1' }] } },
    );
    expect((await pods.driver.probe(id))[0]?.failure).to.be.a('string');
    expect(wasAsked).to.equal(false);
    elsewhere.close();
  });

  it('do not run without a probe or without a Pod', async () => {
    expect((await outcomes({})).seen).to.deep.equal([]);
    expect(await rejection(pods.driver.probe(v7()))).to.be.instanceOf(InstanceGone);
  });
});
