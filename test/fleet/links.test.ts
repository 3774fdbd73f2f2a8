import { expect } from 'chai';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Agent, createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { newFleetKey } from '../../src/fleet/link/fleet-keys.ts';
import type { IdentityCheck } from '../../src/fleet/link/worker-link.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest } from './a-fleet.ts';

/** A worker's server: answers with the hash of what it got, or with bytes without end. */
const server = createServer((request, response) => {
  const hash = createHash('sha256');
  request.on('data', (bytes: Buffer) => hash.update(bytes));
  request.on('end', () => {
    if (request.url === '/flood') return flood(response);
    response.end(hash.digest('hex'));
  });
});
let flooded = 0;
const flood = (response: { write: (bytes: Buffer) => boolean; once: Function }): void => {
  const bytes = Buffer.alloc(65_536);
  for (;;) {
    flooded += bytes.length;
    if (response.write(bytes)) continue;
    response.once('drain', () => flood(response));
    return;
  }
};
const serve = (connection: Duplex): void => {
  server.emit('connection', connection);
};

describe('fleet links', () => {
  let fleet: FleetUnderTest;

  beforeEach(async () => {
    fleet = await FleetUnderTest.start();
  });
  afterEach(() => fleet.stop());

  const ask = async (
    clusterId: string,
    { path = '/', body = Buffer.alloc(0) } = {},
  ): Promise<IncomingMessage> => {
    const asked = httpRequest({
      agent: Object.assign(new Agent(), {
        createConnection: () => fleet.links.find(clusterId)?.dial(),
      }),
      method: 'POST',
      path,
      host: 'worker',
    });
    asked.end(body);
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    return answer;
  };
  const textOf = async (answer: IncomingMessage): Promise<string> => {
    let text = '';
    for await (const chunk of answer) text += String(chunk);
    return text;
  };

  it('forward requests to the server of a joined worker', async () => {
    await fleet.join({ clusterId: 'w1', serve });
    const body = randomBytes(5_000_000);
    const asked = await Promise.all(
      [0, 1, 2, 3].map(async () => textOf(await ask('w1', { body }))),
    );
    expect(new Set(asked)).to.deep.equal(
      new Set([createHash('sha256').update(body).digest('hex')]),
    );
  });

  it('survive more unread answers than HTTP/2 accepts before it suspects an attack', async () => {
    await fleet.join({ clusterId: 'w1', serve });
    const { linkId } = fleet.links.find('w1') ?? {};
    for (let round = 0; round < 11; round += 1)
      await Promise.all(
        Array.from({ length: 100 }, async () => {
          const connection = fleet.links.find('w1')?.dial();
          connection?.write('GET /x HTTP/1.1\r\nHost: w\r\n\r\n');
          await once(connection ?? fail(), 'data');
          connection?.destroy();
        }),
      );
    expect(await textOf(await ask('w1'))).to.have.length(64);
    expect(fleet.links.find('w1')?.linkId).to.equal(linkId);
  });

  it('make a worker send no faster than the other end reads', async () => {
    await fleet.join({ clusterId: 'w1', serve });
    flooded = 0;
    const answer = await ask('w1', { path: '/flood' });
    let before = -1;
    await eventually(async () => {
      const stands = flooded > 0 && flooded === before;
      before = flooded;
      return stands;
    }, 'the worker waits');
    expect(flooded).to.be.lessThan(8 << 20);
    expect(await textOf(await ask('w1'))).to.have.length(64); // others are not held up
    answer.destroy();
  });

  it('reopen with just the key of the worker after they broke', async () => {
    const { folder, links } = await fleet.join({ clusterId: 'w1', serve });
    links.stop();
    await eventually(() => !fleet.links.find('w1'), 'the link is cut');
    expect(fleet.links.list()).to.have.nested.property('[0].isConnected', false);
    fleet.worker({ clusterId: 'w1', serve, folder });
    await fleet.linked('w1');
  });

  it('accept a token once, from the cluster that it was made for', async () => {
    const { token } = await fleet.registry.invite('w1');
    const other = fleet.worker({ clusterId: 'w2', serve, joinToken: token });
    await eventually(() => other.told.length > 0, 'the other one is refused');
    fleet.worker({ clusterId: 'w1', serve, joinToken: token });
    await fleet.linked('w1');
    const { linkId } = fleet.links.find('w1') ?? {};
    const thief = fleet.worker({ clusterId: 'w1', serve, joinToken: token });
    await eventually(() => thief.told.length > 0, 'the thief is refused');
    expect(thief.told[0]).to.include('was already used');
    expect(other.told[0]).to.include('needs a valid join token');
    expect(fleet.links.find('w1')?.linkId).to.equal(linkId);
    expect(fleet.links.find('w2')).to.equal(undefined);
  });

  it('are taken back from a thief of a used token by a removal and a new token', async () => {
    const { token } = await fleet.registry.invite('w1');
    fleet.worker({ clusterId: 'w1', serve, joinToken: token });
    await fleet.linked('w1');
    const { linkId } = fleet.links.find('w1') ?? {};
    const robbed = fleet.worker({ clusterId: 'w1', serve, joinToken: token });
    await eventually(() => robbed.told.length > 0, 'the worker is refused');
    expect(robbed.told[0]).to.include('was already used');
    robbed.links.stop();

    await fleet.registry.remove('w1');
    await eventually(() => !fleet.links.find('w1'), 'the thief is cut');
    const again = await fleet.registry.invite('w1');
    fleet.worker({ clusterId: 'w1', serve, folder: robbed.folder, joinToken: again.token });
    await fleet.linked('w1');
    expect(fleet.links.find('w1')?.linkId).not.to.equal(linkId);
  });

  it('reopen if a stopped clock makes their identities invalid', async () => {
    let check: IdentityCheck | undefined;
    await fleet.stop();
    const clock = new TestClock();
    fleet = await FleetUnderTest.start({ clock });
    await fleet.join({ clusterId: 'w1', serve: (_, checking) => (check = checking) });
    const route = fleet.links.find('w1') ?? fail();
    const request = { method: 'GET', target: '/', idempotencyKey: undefined };
    const caller = {
      ...{ namespace: 'n', team: 't', user: 'u', keyId: 'k' },
      role: 'user',
    } as const;
    const signed = [route.identify(caller, request)];
    for (let more = 0; more < 2; more += 1) {
      clock.advance(1_000);
      signed.push(route.identify(caller, request));
    }
    route.dial().on('error', () => undefined);
    await eventually(() => check !== undefined, 'the connection is there');
    // the worker's clock goes on while what was signed waits, as where the manager stood still
    clock.advance(8_100);
    for (const each of signed) {
      expect(check?.(each, request)).to.have.property('code', 'UNAVAILABLE');
      clock.advance(1_000);
    }
    // no more time passes: it was cut at once, and another is there within a second of that
    const linkId = (): string | undefined => fleet.links.find('w1')?.linkId;
    await eventually(() => ![undefined, route.linkId].includes(linkId()), 'it is anew');
  });

  it("are refused to a worker that claims another's id, which keeps its own link", async () => {
    await fleet.join({ clusterId: 'w1', serve });
    const { linkId } = fleet.links.find('w1') ?? {};
    const { token } = await fleet.registry.invite('w2');
    const liar = fleet.worker({ clusterId: 'w1', serve, joinToken: token });
    await eventually(() => liar.told.length > 0, 'it is refused');
    expect(fleet.links.find('w1')?.linkId).to.equal(linkId);
  });

  it('are refused by a worker to a manager other than its own', async () => {
    const foreign = await FleetUnderTest.start({ key: newFleetKey() });
    try {
      const { token } = await fleet.registry.invite('w1');
      await foreign.registry.invite('w1');
      const worker = fleet.worker({
        clusterId: 'w1',
        serve,
        joinToken: token,
        manager: `ws://127.0.0.1:${foreign.port}`,
      });
      await eventually(() => worker.told.length > 0, 'it refuses');
      expect(worker.told[0]).to.include('not the manager');
      expect(foreign.links.find('w1')).to.equal(undefined);
    } finally {
      await foreign.stop();
    }
  });

  it('do not open with the id of the manager, or without an id', async () => {
    for (const clusterId of ['hub', '', 'A', 'a.b', 'x'.repeat(64)]) {
      const refused = await fleet.registry.invite(clusterId).then(
        () => 'invited',
        (error: { readonly code?: string }) => error.code,
      );
      expect([clusterId, refused]).to.deep.equal([clusterId, 'INVALID_ARGUMENT']);
    }
  });
});

const fail = (): never => {
  throw new Error('there is no link');
};
