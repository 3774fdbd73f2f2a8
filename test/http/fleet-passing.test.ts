import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { PassThrough, Writable, type Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { fleetGateway, permitWay } from '../../src/fleet/routing/fleet-gateway.ts';
import { mergedList } from '../../src/fleet/routing/merged/merged-list.ts';
import { Passing } from '../../src/fleet/routing/pass-on.ts';
import { passTaken } from '../../src/fleet/routing/passed-answer.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import type { AnyRequest } from '../../src/http/corridor/route.ts';
import type { Context } from '../../src/http/reply/context.ts';
import { parseApiKey } from '../../src/model/api-key-text.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { tenantKey } from '../../src/model/tenant.ts';
import { fleetOperations } from '../../src/fleet/replication/fleet-operations.ts';
import { FleetUnderTest } from '../fleet/a-fleet.ts';
import { anEngine, type Engine } from '../support/harness/engine-operations.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rulesOf } from './an-approving-server.ts';
import { aServer, type TestServer } from './a-server.ts';

const ID = '0190d4a5-7b1e-7c3a-9f00-000000000001';
const CALLER = {
  namespace: 'team-blue',
  team: 'blue',
  user: 'ada',
  role: 'user',
  keyId: 'k1',
} as const;

describe('a forwarded request', () => {
  let fleet: FleetUnderTest;

  beforeEach(async () => {
    fleet = await FleetUnderTest.start();
  });
  afterEach(() => fleet.stop());

  const request = {
    method: 'GET',
    url: '/sandboxes',
    headers: {},
    rawHeaders: [],
  } as unknown as IncomingMessage;

  it('is refused, without a leaked slot, if the link has broken', async () => {
    const { links } = await fleet.join({ clusterId: 'w1', serve: () => undefined });
    const way = fleet.links.find('w1') ?? fail();
    links.stop();
    await eventually(() => !fleet.links.find('w1'), 'the link is cut');
    const passing = new Passing(systemClock());
    const { signal } = new AbortController();
    for (let round = 0; round < 300; round += 1) {
      const refused = await passing
        .pass({ way, caller: CALLER, request, requestId: 'r', signal })
        .catch((error: unknown) => error);
      expect(refused).to.include({
        code: 'CLUSTER_UNAVAILABLE',
        message: 'the cluster w1 is not connected; try again',
      });
    }
  });

  it('sends its headers at once, before its body, since its identity expires', async () => {
    const asked: string[] = [];
    const worker = createServer((given, response) => {
      asked.push(given.method ?? '');
      given.resume().once('end', () => response.end('taken'));
    });
    await fleet.join({
      clusterId: 'w1',
      serve: (connection) => void worker.emit('connection', connection),
    });
    const passing = new Passing(systemClock());
    const passed = {
      ...{ way: fleet.links.find('w1') ?? fail(), caller: CALLER, requestId: 'r' },
      signal: new AbortController().signal,
    };
    await (await passing.pass({ ...passed, request })).toArray(); // its connection is kept
    const body = new PassThrough();
    const put = { ...request, method: 'PUT' } as IncomingMessage;
    const answer = passing.pass({ ...passed, request: put, body });
    await eventually(() => asked.length === 2, 'the worker has the head');
    body.end('late');
    expect(String((await (await answer).toArray())[0])).to.equal('taken');
    passing.stop();
  });

  it('is watched for a silent link while it waits', () => {
    const clock = new TestClock();
    const probes = new Set<() => void>();
    const way = {
      probe: (silent: () => void) => {
        probes.add(silent);
        return () => probes.delete(silent);
      },
    } as unknown as Parameters<Passing['lookAt']>[0];
    let silent = 0;
    const callOff = new Passing(clock).lookAt(way, () => (silent += 1));
    clock.advance(1_000);
    expect(probes.size).to.equal(1);
    probes.clear(); // it was heard
    clock.advance(60_000);
    expect(probes.size).to.equal(1);
    for (const tell of probes) tell();
    callOff();
    clock.advance(60_000);
    expect([silent, probes.size]).to.deep.equal([1, 0]);
  });

  it('is closed if its client reads nothing while data waits, but not without data', async () => {
    const clock = new TestClock();
    const [answer, silent] = [new PassThrough(), new PassThrough()];
    const unread = new Writable({ highWaterMark: 1, write: () => undefined });
    const idle = new Writable({ write: (_chunk, _encoding, done) => done() });
    const over = passTaken(answer, unread, { clock, stallMs: 30_000 });
    const goesOn = passTaken(silent, idle, { clock, stallMs: 30_000 });
    silent.write('a line');
    answer.write('much');
    await eventually(() => answer.isPaused(), 'its client takes nothing');
    clock.advance(30_000);
    await over;
    expect([unread.destroyed, answer.destroyed]).to.deep.equal([true, true]);
    expect([idle.destroyed, silent.destroyed]).to.deep.equal([false, false]);
    silent.end();
    await goesOn;
    expect(idle.writableFinished).to.equal(true);
  });

  it('for a list omits a cluster that does not answer in time', async () => {
    let asked = 0;
    const silent = createServer(() => (asked += 1));
    await fleet.join({
      clusterId: 'w1',
      serve: (connection) => void silent.emit('connection', connection),
    });
    const clock = new TestClock();
    const warnings: string[] = [];
    let signals = 0;
    const listed = mergedList(
      { fleet: fleetOperations(fleet.links, 'hub'), passing: new Passing(clock) },
      {
        caller: CALLER,
        context: {
          req: request,
          path: '/sandboxes',
          querystring: '',
          state: { requestId: 'r' },
          append: (_name: string, value: string) => void warnings.push(value),
        } as unknown as Context,
        request: {
          query: { limit: 10, offset: 0 },
          room: () => ({ hold: () => undefined }),
          signal: () => {
            signals += 1;
            return new AbortController().signal;
          },
        } as unknown as AnyRequest,
        own: () => ({ status: 200, body: { items: [], total: 0 } }),
      },
    );
    await eventually(() => asked === 1, 'the cluster is asked');
    clock.advance(10_000);
    expect((await listed).body).to.include({ total: 0, incomplete: true });
    expect(warnings.join()).to.include('w1');
    expect(signals).to.equal(1); // each follows the key, and listens to the response
  });

  describe('to a terminal', () => {
    let manager: TestServer;
    let operations: Engine;
    const ends: Duplex[] = [];
    /** What the worker says in place of agreeing. */
    let refusal: string | undefined;
    /** The key that the worker says a terminal is by; and those that the manager has. */
    let toldKey: string | undefined;
    const owners = new Set<string>();
    let passing: Passing;
    /** Takes all places that a tenant may have on the link; returns the way to give them back. */
    let holdAll: (tenant: string) => () => void;

    beforeEach(async () => {
      ends.length = 0;
      refusal = undefined;
      toldKey = undefined;
      owners.clear();
      operations = anEngine();
      const { clock } = operations;
      const clients = clientsOf({ operations, clock, log: quietLog });
      passing = new Passing(systemClock());
      const deps = { fleet: fleetOperations(fleet.links, 'hub'), passing };
      holdAll = (tenant) => {
        const way = deps.fleet.wayTo('w1');
        const held: (() => void)[] = [];
        const giveBack = (): void => {
          for (const release of held.splice(0)) release();
        };
        try {
          while (held.length < 256) held.push(deps.passing.hold(way, tenant));
        } catch (error) {
          giveBack();
          throw error;
        }
        return giveBack;
      };
      const nothing = (_request: unknown, socket: Duplex): void => void socket.destroy();
      const { upgrade } = fleetGateway({
        ...deps,
        clients,
        clock,
        log: quietLog,
        gate: { rulesFor: () => [] },
        keyOwner: (keyId) => (owners.has(keyId) ? { ...CALLER, keyId } : undefined),
        gateway: {
          takes: () => false,
          answer: () => Promise.resolve(),
          upgrade: nothing,
          stop: () => undefined,
        },
        upgrade: nothing,
      });
      manager = await aServer({ clusterId: 'hub', operations, clients, fleet: deps, upgrade });
      let tokens = 0;
      const worker = createServer((asked, response) => {
        asked.resume();
        const text = JSON.stringify({ token: `t${(tokens += 1)}` });
        response.writeHead(200, {
          'Content-Type': 'application/json',
          'Content-Length': text.length,
        });
        response.end(text);
      });
      const terminals = new WebSocketServer({ noServer: true });
      terminals.on('headers', (headers) => {
        if (toldKey !== undefined) headers.push(`Sandpool-Fleet-Key: ${toldKey}`);
      });
      worker.on('upgrade', (asked, socket, head) => {
        ends.push(socket);
        if (refusal !== undefined) return socket.end(refusal);
        terminals.handleUpgrade(asked, socket, head, () => undefined);
      });
      await fleet.join({
        clusterId: 'w1',
        serve: (connection) => void worker.emit('connection', connection),
      });
    });
    afterEach(() => manager.stop());

    const tokenFrom = async (): Promise<string> =>
      (await manager.tenant.post(`/sandboxes/w1.${ID}/exec-token`)).json.token ?? fail();
    const open = (token: string): WebSocket => {
      const socket = new WebSocket(
        `ws://127.0.0.1:${manager.port}/ws/clusters/w1/sandboxes/${ID}/terminal?token=${token}`,
      );
      socket.on('error', () => undefined);
      return socket;
    };

    it('is refused if the worker is silent or refuses', async () => {
      const refusedBy = async (): Promise<IncomingMessage> => {
        const terminal = open(await tokenFrom());
        const [, answer] = await once(terminal, 'unexpected-response');
        return answer as IncomingMessage;
      };
      for (refusal of ['', 'HTTP/1.1 007 No\r\n\r\n']) {
        const { statusCode, headers } = await refusedBy();
        expect([statusCode, headers['retry-after']]).to.deep.equal([503, '1']);
      }
      refusal =
        'HTTP/1.1 409 No\r\nConnection: X-A\r\nX-A: 1\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nno';
      const answer = await refusedBy();
      expect(answer.statusCode).to.equal(409);
      // and three tokens
      expect(passing.passed.of('w1')).to.deep.equal({ answered: 4, unavailable: 2 });
      expect(answer.headers).not.to.have.any.keys('x-a', 'set-cookie');
      expect(String((await answer.toArray())[0])).to.equal('no');
    });

    it('reveals nothing about a cluster to a caller with an invalid token', async () => {
      const told = async (cluster: string): Promise<readonly unknown[]> => {
        const socket = new WebSocket(
          `ws://127.0.0.1:${manager.port}/ws/clusters/${cluster}/sandboxes/${ID}/terminal?token=x`,
        );
        socket.on('error', () => undefined);
        const [, answer] = (await once(socket, 'unexpected-response')) as [
          unknown,
          IncomingMessage,
        ];
        const { errorCode } = JSON.parse(String(Buffer.concat(await answer.toArray()))) as {
          readonly errorCode: string;
        };
        return [answer.statusCode, errorCode, Object.keys(answer.headers)];
      };
      const unknown = await told('nobody');
      expect(unknown.slice(0, 2)).to.deep.equal([401, 'INVALID_TOKEN']);
      for (const status of [400, 401, 404]) {
        refusal = `HTTP/1.1 ${status} No\r\nX-Worker: 1\r\nContent-Length: 2\r\n\r\n{}`;
        expect(await told('w1')).to.deep.equal(unknown);
      }
    });

    it('ends with the key that made its token on another replica', async () => {
      toldKey = parseApiKey(manager.tenant.key ?? '')?.keyId ?? fail();
      owners.add(toldKey);
      const terminal = open('made-elsewhere');
      await once(terminal, 'open');
      await manager.admin.delete('/admin/api-keys?team=blue&user=ada');
      await eventually(
        () => terminal.readyState === WebSocket.CLOSED && ends[0]?.destroyed === true,
        'the terminal is closed at both ends',
      );
      owners.clear();
      const [, answer] = await once(open('made-elsewhere-too'), 'unexpected-response');
      expect((answer as IncomingMessage).statusCode).to.equal(401);
    });

    it('prints no warning about leaked listeners', async () => {
      const warned: Error[] = [];
      const onWarning = (warning: Error): void => void warned.push(warning);
      process.on('warning', onWarning);
      const terminal = open(await tokenFrom());
      await once(terminal, 'open');
      terminal.close();
      await eventually(() => ends[0]?.destroyed === true, 'both ends are closed');
      process.off('warning', onWarning);
      expect(warned).to.deep.equal([]);
    });

    it('counts for the owner of the key that made its token on another replica', async () => {
      toldKey = parseApiKey(manager.tenant.key ?? '')?.keyId ?? fail();
      owners.add(toldKey);
      const terminal = open('made-elsewhere');
      await once(terminal, 'open');
      const hasAll = (tenant: string): boolean => {
        try {
          holdAll(tenant)();
          return true;
        } catch {
          return false;
        }
      };
      const owner = tenantKey(CALLER);
      expect([hasAll(''), hasAll(owner)]).to.deep.equal([true, false]);
      terminal.terminate();
      await eventually(() => hasAll(owner), 'its place is given back');

      const giveBack = holdAll(owner);
      const [, answer] = await once(open('made-elsewhere-too'), 'unexpected-response');
      expect((answer as IncomingMessage).statusCode).to.equal(503);
      await eventually(() => ends[1]?.destroyed === true, 'the worker is told');
      giveBack();
      expect([hasAll(''), hasAll(owner)]).to.deep.equal([true, true]);
    });

    it('ends with the key that made its token, and so does the token', async () => {
      const [token, later] = [await tokenFrom(), await tokenFrom()];
      const terminal = open(token);
      await once(terminal, 'open');
      await manager.admin.delete('/admin/api-keys?team=blue&user=ada');
      await eventually(
        () => terminal.readyState === WebSocket.CLOSED && ends[0]?.destroyed === true,
        'the terminal is closed at both ends',
      );
      const refused = open(later);
      await eventually(() => refused.readyState === WebSocket.CLOSED, 'the other token is refused');
      expect(ends).to.have.length(1);
    });
  });
});

describe("a connection to another cluster's sandbox", () => {
  it('is refused by a matching rule of the manager', () => {
    const gate = { rulesFor: () => rulesOf('require operation=openEndpoint|writeToProcess') };
    for (const way of ['endpoints/web/index.html?a=b', 'processes/p/output'])
      expect(() =>
        permitWay(gate, { url: `/v1/sandboxes/w1.${ID}/${way}` } as IncomingMessage, CALLER),
      )
        .to.throw(Refusal)
        .with.property('code', 'APPROVAL_DENIED');
  });
});

describe('an exception during a forwarded request', () => {
  it('is logged, and not shown to others', async () => {
    const logged: object[] = [];
    const operations = anEngine();
    const clients = clientsOf({ operations, clock: operations.clock, log: quietLog });
    const nothing = (_request: unknown, socket: Duplex): void => void socket.destroy();
    const broken = {
      ...fleetOperations({ find: () => undefined, all: () => [] } as never, 'hub'),
      wayTo: (): never => {
        throw new TypeError('a fault of ours');
      },
    };
    const { upgrade } = fleetGateway({
      ...{ fleet: broken, passing: new Passing(systemClock()), clients, clock: operations.clock },
      gate: { rulesFor: () => [] },
      keyOwner: () => undefined,
      log: { ...quietLog, error: (fields) => void logged.push(fields) },
      gateway: {
        takes: () => false,
        answer: () => Promise.resolve(),
        upgrade: nothing,
        stop: () => undefined,
      },
      upgrade: nothing,
    });
    const server = await aServer({ clusterId: 'hub', operations, clients, upgrade });
    const socket = new WebSocket(
      `ws://127.0.0.1:${server.port}/ws/clusters/w1/sandboxes/${ID}/terminal?token=t`,
    );
    const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(answer.statusCode).to.equal(500);
    expect(logged).to.have.length(1);
    expect(String(Object(logged[0]).error)).to.include('a fault of ours');
    socket.on('error', () => undefined).terminate();
    await server.stop();
  });
});

const fail = (): never => {
  throw new Error('there is none');
};
