import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { v7 } from 'uuid';
import { InstanceGone, NotJoinable, PortUnreachable } from '../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { podPortSuite } from '../contracts/pod-port.ts';
import { PodStreamsUnderTest } from '../support/cluster/pod-streams.ts';
import { received } from '../support/harness/received.ts';
import { rejection } from '../support/harness/rejection.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

const PORT = 7_000;

describe('a port of a Pod', function () {
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
  beforeEach(() => {
    greets = false;
  });
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
  podPortSuite('as any port', async () => {
    const own = await PodStreamsUnderTest.start(controlPlane());
    return { under: own, pod: await own.pod('echoing'), port: PORT };
  });

  it('sends data first if the server speaks first', async () => {
    greets = true;
    const stream = await dial();
    expect(String(await received(stream, 18))).to.equal('hello and good-bye');
    stream.destroy();
  });

  it('rejects with InstanceGone if the Pod is gone, or with the reason of the signal', async () => {
    expect(
      await rejection(
        under.streams.dial({ ...pod, uid: v7() }, PORT, new AbortController().signal),
      ),
    ).to.be.instanceOf(InstanceGone);
    expect(await rejection(dial(PORT, AbortSignal.abort(new Error('no more'))))).to.have.property(
      'message',
      'no more',
    );
    const controller = new AbortController();
    const dialling = rejection(dial(PORT, controller.signal));
    controller.abort(new Error('called off'));
    expect(await dialling).to.have.property('message', 'called off');
  });

  it('rejects with NotJoinable if the API server does not answer', async () => {
    under.proxy.state = 'cut-answers';
    expect(await rejection(dial())).to.be.instanceOf(NotJoinable);
    under.proxy.state = 'pass';
  });

  it('fails with an error when the connection breaks or hangs', async () => {
    const pinging = await PodStreamsUnderTest.start(controlPlane(), { pingEveryMs: 1_000 });
    const target = await pinging.pod('main');
    // A read by a connection that was cut would fail, too.
    for (const fault of ['hold', 'cut'] as const) {
      const stream = await pinging.streams.dial(target, PORT, new AbortController().signal);
      const failed = once(stream, 'error');
      if (fault === 'cut') pinging.proxy.cut();
      else pinging.proxy.state = 'hold';
      const [error] = (await failed) as [Error];
      expect(error).to.be.instanceOf(PortUnreachable);
      pinging.proxy.state = 'pass';
    }
    await pinging.close();
  });

  it('waits for a port that does not read, and for a slow reader', async () => {
    const direct = await PodStreamsUnderTest.start(controlPlane(), {
      direct: true,
      pingEveryMs: 1_300, // three of them are less than it rests
    });
    const stream = await direct.streams.dial(
      await direct.pod('main'),
      PORT,
      new AbortController().signal,
    );
    const sent = 100 << 20;
    let left = sent;
    const restedSince = performance.now();
    while (left > 0) {
      const size = Math.min(left, 1 << 20);
      if (!stream.write(Buffer.alloc(size, 'z'))) {
        const drained = await Promise.race([
          once(stream, 'drain').then(() => true),
          new Promise<boolean>((resolve) => {
            setTimeout(() => resolve(false), 4_000);
          }),
        ]);
        if (!drained) break;
      }
      left -= size;
    }
    expect(left).to.be.greaterThan(20 << 20);
    expect(performance.now() - restedSince).to.be.greaterThan(3_000);
    expect((await received(stream, 1 << 20)).length).to.be.at.least(1 << 20);
    stream.destroy();
    await direct.close();
  });
});
