import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { v7 } from 'uuid';
import { InstanceGone, NotJoinable, PortUnreachable } from '../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../src/k8s/pod-presence.ts';
import { eventually } from '../support/eventually.ts';
import { PodStreamsUnderTest } from '../support/pod-streams.ts';
import { rejection } from '../support/rejection.ts';
import { onTheControlPlane } from '../support/shared-cluster.ts';

const PORT = 7_000;

describe('a port of a Pod', function () {
  this.timeout(60_000);
  const controlPlane = onTheControlPlane();
  let under: PodStreamsUnderTest;
  let pod: PodTarget;
  let server: Server;
  let greets = false;

  before(async () => {
    server = createServer((socket) => {
      socket.on('error', () => {});
      if (greets) socket.end('hello and good-bye');
      else socket.pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    await controlPlane().forward(PORT, (server.address() as AddressInfo).port);
    under = await PodStreamsUnderTest.start(controlPlane());
    pod = await under.pod('main');
  });
  beforeEach(() => { greets = false; });
  after(async () => {
    await under.close();
    server.close();
  });

  /** Over a link of its own, once the port has taken it. */
  const dial = async (port = PORT, signal = new AbortController().signal): Promise<Duplex> => {
    const connection = await under.streams.dial(pod, port, signal);
    await connection.taken;
    return connection;
  };
  const again = (): Duplex | undefined => under.streams.dialKept(pod.uid, PORT, new AbortController().signal);

  const received = async (stream: Duplex, length: number): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= length) break;
    }
    return Buffer.concat(chunks);
  };

  it('takes connections of their own each, and carries bytes both ways unharmed', async () => {
    const [one, two] = await Promise.all([dial(), dial()]);
    one.write('one');
    two.write('two');
    expect(String(await received(one, 3))).to.equal('one');
    expect(String(await received(two, 3))).to.equal('two');
    const long = Buffer.alloc(20 << 20, 'long');
    one.write(long);
    expect((await received(one, long.length)).equals(long)).to.equal(true);
    one.destroy();
    two.destroy();
  });

  it('takes one connection after the other over the same link, whether the last one was read to its end or not', async () => {
    under.streams.gone(pod.uid);
    expect(again()).to.equal(undefined);
    const first = await dial();
    const links = under.proxy.connections;
    first.write('first');
    await received(first, 5);
    first.destroy();
    for (let round = 0; round < 20; round += 1) {
      const stream = again();
      if (!stream) throw new Error(`no link was kept in round ${round}`);
      stream.write(`round ${round}.`);
      if (round % 3 === 0) stream.write(Buffer.alloc(1 << 20));
      expect(String(await received(stream, `round ${round}.`.length)).startsWith(`round ${round}.`)).to.equal(true);
      stream.destroy();
    }
    expect(under.proxy.connections).to.equal(links);
    under.streams.gone(pod.uid);
    await eventually(() => again() === undefined, 'the link is let go');
  });

  it('keeps no link on which a port refused', async () => {
    under.streams.gone(pod.uid);
    await rejection(dial(7_001));
    expect(again()).to.equal(undefined);
  });

  it('gives what the port says first', async () => {
    greets = true;
    const stream = await dial();
    expect(String(await received(stream, 18))).to.equal('hello and good-bye');
    stream.destroy();
  });

  it('rejects with PortUnreachable where nothing takes it', async () => {
    expect(await rejection(dial(7_001))).to.be.instanceOf(PortUnreachable).with.property('message').that.contains('7001');
  });

  it('rejects with InstanceGone where there is no such Pod, and with the signal\'s reason', async () => {
    expect(await rejection(under.streams.dial({ ...pod, uid: v7() }, PORT, new AbortController().signal))).to.be.instanceOf(InstanceGone);
    expect(await rejection(dial(PORT, AbortSignal.abort(new Error('no more'))))).to.have.property('message', 'no more');
    const controller = new AbortController();
    const dialling = rejection(dial(PORT, controller.signal));
    controller.abort(new Error('called off'));
    expect(await dialling).to.have.property('message', 'called off');
  });

  it('rejects with NotJoinable where the API server does not answer', async () => {
    under.proxy.state = 'cut-answers';
    expect(await rejection(dial())).to.be.instanceOf(NotJoinable);
    under.proxy.state = 'pass';
  });

  it('breaks off with an error when the link is cut, or hangs', async () => {
    const pinging = await PodStreamsUnderTest.start(controlPlane(), { pingEveryMs: 300 });
    const target = await pinging.pod('main');
    // A read by a connection that was cut would fail, too.
    for (const fault of ['hold', 'cut'] as const) {
      const stream = await pinging.streams.dial(target, PORT, new AbortController().signal);
      const failed = once(stream, 'error');
      if (fault === 'cut') pinging.proxy.cut();
      else pinging.proxy.state = 'hold';
      const [error] = await failed as [Error];
      expect(error).to.be.instanceOf(PortUnreachable);
      pinging.proxy.state = 'pass';
    }
    await pinging.close();
  });

  it('waits for a port that does not read, and for a reader that does not', async () => {
    const direct = await PodStreamsUnderTest.start(controlPlane(), { direct: true, pingEveryMs: 300 });
    const stream = await direct.streams.dial(await direct.pod('main'), PORT, new AbortController().signal);
    const sent = 100 << 20;
    let left = sent;
    const restedSince = performance.now();
    while (left > 0) {
      const size = Math.min(left, 1 << 20);
      if (!stream.write(Buffer.alloc(size, 'z'))) {
        const drained = await Promise.race([once(stream, 'drain').then(() => true), new Promise<boolean>((resolve) => { setTimeout(() => resolve(false), 1_500); })]);
        if (!drained) break;
      }
      left -= size;
    }
    expect(left).to.be.greaterThan(20 << 20);
    expect(performance.now() - restedSince).to.be.greaterThan(1_000);
    expect((await received(stream, 1 << 20)).length).to.be.at.least(1 << 20);
    stream.destroy();
    await direct.close();
  });
});
