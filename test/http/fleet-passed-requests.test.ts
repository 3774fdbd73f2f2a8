import { expect } from 'chai';
import { createServer, type IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { Passing } from '../../src/fleet/routing/pass-on.ts';
import { tenantKey } from '../../src/model/tenant.ts';
import { CALLER } from '../fleet/a-request.ts';
import { FleetUnderTest } from '../fleet/a-fleet.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

const ID = '0190d4a5-7b1e-7c3a-9f00-000000000001';

describe('forwarded requests count', () => {
  let servers: FleetOfServers;
  const counts = (clusterId = 'w1') => servers.passing.passed.of(clusterId);

  before(async () => {
    servers = await aFleetOfServers();
  });
  after(() => servers.stop());

  it('as answered, whatever the cluster answers, and as unavailable if it cannot', async () => {
    const { tenant } = servers.manager;
    expect((await tenant.get('/quotas?clusterID=w1')).status).to.equal(200);
    expect((await tenant.get(`/sandboxes/w1.${ID}`)).status).to.equal(404);
    expect(counts()).to.deep.equal({ answered: 2, unavailable: 0 });

    expect((await tenant.get(`/sandboxes/w3.${ID}`)).status).to.equal(404); // no such cluster
    servers.cut('w1');
    await eventually(() => !servers.fleet.links.find('w1'), 'it is cut');
    for (const path of [
      `/sandboxes/w1.${ID}`,
      '/sandboxes?poolName=w1::default',
      '/quotas?clusterID=w1',
    ])
      expect((await tenant.get(path)).status, path).to.equal(503);
    const claimed = await tenant.post('/sandboxes', { poolName: 'w1::default' });
    expect(claimed.status).to.equal(503);
    expect([counts(), counts('w2'), counts('w3')]).to.deep.equal([
      { answered: 2, unavailable: 4 },
      { answered: 0, unavailable: 0 },
      { answered: 0, unavailable: 0 },
    ]);
  });
});

describe('requests on a link count', () => {
  let fleet: FleetUnderTest;
  let passing: Passing;
  let asked: number;
  /** Answers nothing. */
  const silent = createServer(() => void (asked += 1));
  silent.on('upgrade', () => void (asked += 1));

  beforeEach(async () => {
    [asked, passing] = [0, new Passing(new TestClock())];
    fleet = await FleetUnderTest.start();
    await fleet.join({
      clusterId: 'w1',
      serve: (connection) => void silent.emit('connection', connection),
    });
  });
  afterEach(async () => {
    passing.stop();
    await fleet.stop();
  });

  const request = {
    ...{ method: 'PUT', url: '/sandboxes', headers: {}, rawHeaders: [] },
  } as unknown as IncomingMessage;
  const pass = (signal = new AbortController().signal): Promise<unknown> => {
    const way = fleet.links.find('w1') ?? fail();
    const body = new PassThrough().end();
    return rejection(passing.pass({ way, caller: CALLER, request, body, requestId: 'r', signal }));
  };

  it('as unavailable if the link breaks before the answer, but not if the client left', async () => {
    const left = new AbortController();
    const leaving = pass(left.signal);
    await eventually(() => asked === 1, 'the cluster is asked');
    left.abort();
    await leaving;
    expect(passing.passed.of('w1')).to.deep.equal({ answered: 0, unavailable: 0 });

    const waiting = pass();
    await eventually(() => asked === 2, 'the cluster is asked again');
    await fleet.links.dismiss('w1');
    await waiting;
    expect(passing.passed.of('w1')).to.deep.equal({ answered: 0, unavailable: 1 });
  });

  it('as unavailable if the tenant uses its whole share of the link', async () => {
    const way = fleet.links.find('w1') ?? fail();
    for (let n = 0; n < 256; n += 1) passing.hold(way, tenantKey(CALLER));
    await pass();
    expect([asked, passing.passed.of('w1')]).to.deep.equal([0, { answered: 0, unavailable: 1 }]);
  });
});

const fail = (): never => {
  throw new Error('there is none');
};
