import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, request, ServerResponse, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { toCluster } from '../../src/fleet/e2b/to-cluster.ts';
import { Passing } from '../../src/fleet/routing/pass-on.ts';
import { GatewayAgent } from '../../src/http/gateway/agent.ts';
import { exchange } from '../../src/http/gateway/exchange.ts';
import { upgradeEndpoint } from '../../src/http/gateway/upgrade.ts';
import type { Clients } from '../../src/http/limits/clients.ts';
import type { InstanceId } from '../../src/model/identifiers.ts';
import { CALLER } from '../fleet/a-request.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';

const SERVICES = 49_983;
const SANDBOX = '0190d4a5-7b1e-7c3a-9f00-000000000001' as InstanceId;

describe('traffic for a sandbox of another cluster', () => {
  const agent = new GatewayAgent();
  /** What the worker is asked. */
  const asked: IncomingMessage[] = [];
  const probes = new Set<() => void>();
  let answer: (response: ServerResponse, asked: IncomingMessage) => void;
  let dials: number;
  /** What the last request that was not answered was refused by. */
  let thrown: unknown;
  let dial: () => Duplex;
  let clientOf: () => string;
  let clock: TestClock;
  let passing: Passing;

  const worker = createServer((given, response) => {
    asked.push(given);
    answer(response, given);
  });
  const sockets = new WebSocketServer({ server: worker });
  const way = {
    ...{ clusterId: 'w1', linkId: 'l1', latencyMs: () => 0 },
    identify: () => 'signed',
    dial: () => {
      dials += 1;
      return dial();
    },
    probe: (silent: () => void) => {
      probes.add(silent);
      return () => void probes.delete(silent);
    },
  };
  /** The port that is asked for stands before the path. */
  const passOn = async (
    given: IncomingMessage,
    head?: Buffer,
    response = new ServerResponse(given),
  ) => {
    const [, port = ''] = /^\/([0-9]+)/.exec(given.url ?? '') ?? [];
    const deps = {
      clients: { of: () => clientOf(), base: () => 'http://hub' } as unknown as Clients,
      clock: systemClock(),
      fleet: { fleet: { wayTo: () => way } as never, passing },
    };
    if (head) response.assignSocket(given.socket);
    const sandbox = { sandboxId: SANDBOX, clusterId: 'w1', caller: CALLER, port: Number(port) };
    const exchanged: Parameters<typeof toCluster>[2]['exchanged'] = async (terms) => {
      if (head) await upgradeEndpoint({ request: given, response, head }, { ...terms, agent });
      else await exchange(given, response, { ...terms, agent });
    };
    const admitted = { ...sandbox, by: 'token' } as const;
    await toCluster(deps, admitted, { request: given, exchanged }).catch((error: unknown) => {
      thrown = error;
      if (response.headersSent) response.destroy();
      else response.writeHead(503).end(String(error));
    });
  };
  const manager = createServer((given, response) => void passOn(given, undefined, response));
  manager.on('upgrade', (given, _socket, head) => void passOn(given, head));

  const portOf = (server: typeof manager): number => (server.address() as AddressInfo).port;
  before(async () => {
    for (const server of [worker, manager]) await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  after(() => {
    agent.destroy();
    sockets.close();
    for (const server of [worker, manager]) {
      server.close();
      server.closeAllConnections();
    }
  });
  beforeEach(() => {
    asked.length = 0;
    probes.clear();
    answer = (response) => response.end('of the sandbox');
    dials = 0;
    clientOf = () => '';
    dial = () => connect(portOf(worker), '127.0.0.1');
    clock = new TestClock();
    passing = new Passing(clock);
  });
  afterEach(() => agent.destroy());

  const get = async (port: number): Promise<IncomingMessage> => {
    const asking = request({ port: portOf(manager), path: `/${port}/x`, agent: false }).end();
    const signal = AbortSignal.timeout(NEVER_COMES_MS);
    const [answered] = (await once(asking, 'response', { signal })) as [IncomingMessage];
    return answered;
  };
  const told = async (given: IncomingMessage): Promise<readonly unknown[]> => [
    given.statusCode,
    String(Buffer.concat(await given.toArray())),
  ];

  it('survives a silent link once its answer has begun', async () => {
    const streams: ServerResponse[] = [];
    answer = (response) => {
      streams.push(response);
      response.write('begun');
    };
    const stream = await get(SERVICES);
    const socket = new WebSocket(`ws://127.0.0.1:${portOf(manager)}/3000/x`);
    await once(socket, 'open');
    clock.advance(60_000);
    expect(probes.size).to.equal(0);
    expect(passing.passed.of('w1')).to.deep.equal({ answered: 2, unavailable: 0 });
    streams[0]?.end();
    expect(await told(stream)).to.deep.equal([200, 'begun']);
    socket.terminate();
  });

  it('is refused if its link falls silent earlier, even over a kept connection', async () => {
    await told(await get(SERVICES));
    answer = () => undefined;
    const refused = get(SERVICES);
    await eventually(() => asked.length === 2, 'the worker is asked');
    clock.advance(1_000);
    for (const silent of probes) silent();
    const [status, why] = await told(await refused);
    expect([status, dials]).to.deep.equal([503, 1]);
    expect(passing.passed.of('w1')).to.deep.equal({ answered: 1, unavailable: 1 });
    expect(why).to.include('the cluster w1 did not answer');
  });

  it('keeps connections per link, not per port', async () => {
    for (let port = 3_000; port < 3_005; port += 1) await told(await get(port));
    expect([asked.length, dials]).to.deep.equal([5, 1]);
  });

  it('is refused as without an answer if the cluster accepts no connection', async () => {
    dial = () => {
      const connection = connect(portOf(worker), '127.0.0.1');
      const turnedAway = new Error('the worker accepts no more connections');
      setImmediate(() => connection.destroy(turnedAway));
      return connection;
    };
    const [status, why] = await told(await get(SERVICES));
    expect(status).to.equal(503);
    expect(why).to.include('the cluster w1 did not answer');
  });

  it('passes on local faults unchanged', async () => {
    const fault = new TypeError('nobody thought of it');
    clientOf = () => {
      throw fault;
    };
    await told(await get(SERVICES));
    expect(thrown).to.equal(fault);
    expect(asked.length).to.equal(0);
    expect(passing.passed.of('w1')).to.deep.equal({ answered: 0, unavailable: 0 });
  });

  it('is forwarded at once, whenever its body arrives', async () => {
    answer = (response, given) => void given.resume().once('end', () => response.end('taken'));
    const asking = request({
      ...{ port: portOf(manager), path: `/${SERVICES}/files`, method: 'POST', agent: false },
      headers: { 'Transfer-Encoding': 'chunked' },
    });
    asking.flushHeaders();
    await eventually(() => asked.length === 1, 'the worker has the head');
    asking.end('late');
    const [answered] = (await once(asking, 'response')) as [IncomingMessage];
    expect(await told(answered)).to.deep.equal([200, 'taken']);
  });

  it('is not forwarded elsewhere with an access token', async () => {
    answer = (response) => response.writeHead(307, { Location: 'http://elsewhere.test/' }).end();
    for (const port of [SERVICES, 49_999]) {
      const [status, why] = await told(await get(port));
      expect(status).to.equal(503);
      expect(why).to.include('redirect');
    }
    expect((await get(3_000)).resume().statusCode).to.equal(307);
    expect(passing.passed.of('w1')).to.deep.equal({ answered: 1, unavailable: 2 });
  });
});
