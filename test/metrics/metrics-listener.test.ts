import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { listenOrDoWithout } from '../../src/daemon/listening/listen-or-do-without.ts';
import { MetricsListener } from '../../src/daemon/metrics/metrics-listener.ts';
import { PrometheusMetrics } from '../../src/daemon/metrics/prometheus-metrics.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('MetricsListener', () => {
  const HOST = '127.0.0.1';
  const open: MetricsListener[] = [];
  const aListener = (): MetricsListener => {
    const listener = new MetricsListener(new PrometheusMetrics(), quietLog);
    open.push(listener);
    return listener;
  };
  let other: Server;

  before(async () => {
    other = createServer().listen(0, HOST);
    await once(other, 'listening');
  });

  after(() => {
    other.close();
  });

  afterEach(async () => {
    await Promise.all(open.splice(0).map((listener) => listener.stop()));
  });

  const taken = (): number => (other.address() as AddressInfo).port;

  it('returns GET /metrics in the text format of Prometheus, and nothing else', async () => {
    const port = await aListener().start({ host: HOST, port: 0 });
    const address = `http://${HOST}:${port}/metrics`;

    const answer = await fetch(address);
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('content-type')).to.match(/^text\/plain; version=0\.0\.4/);
    expect(await answer.text()).to.contain('# TYPE sandpool_claims_total counter');
    expect((await fetch(`${address}?name=x`)).status).to.equal(200);
    expect((await fetch(new URL('/', address))).status).to.equal(404);
    const posted = await fetch(address, { method: 'POST' });
    expect(posted.status).to.equal(405);
    expect(posted.headers.get('allow')).to.equal('GET, HEAD');
  });

  const notThere = (given: boolean, warnings: string[]): Promise<string | undefined> =>
    listenOrDoWithout({
      ...{ setting: 'metrics.listen', host: HOST, port: taken(), given },
      listen: (at) => aListener().start(at),
      taken: ({ address }) => void warnings.push(address),
    });

  it('rejects if the configured address is in use, with the remedy', async () => {
    const error = await rejection(notThere(true, []));

    expect(String(error)).to.contain(
      `metrics.listen: another program uses the address ${HOST}:${taken()}; choose another address, or none`,
    );
  });

  it('starts without a listener if the default address is in use, and reports it once', async () => {
    const warnings: string[] = [];

    expect(await notThere(false, warnings)).to.equal(undefined);
    expect(warnings).to.deep.equal([`${HOST}:${taken()}`]);
  });

  it('can be stopped before its start, and twice', async () => {
    const listener = aListener();
    await listener.stop();
    const port = await listener.start({ host: HOST, port: 0 });
    await listener.stop();
    await listener.stop();

    expect(await rejection(fetch(`http://${HOST}:${port}/metrics`))).to.be.instanceOf(Error);
  });
});
