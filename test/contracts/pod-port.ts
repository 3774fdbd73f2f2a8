import { expect } from 'chai';
import type { Duplex } from 'node:stream';
import { PortUnreachable } from '../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { eventually } from '../support/harness/eventually.ts';
import { received } from '../support/harness/received.ts';
import type { PodStreamsUnderTest } from '../support/cluster/pod-streams.ts';
import { rejection } from '../support/harness/rejection.ts';

/** A Pod with a port that echoes, and nothing on the next one. */
export interface EchoingPod {
  readonly under: PodStreamsUnderTest;
  readonly pod: PodTarget;
  readonly port: number;
}

/** What connections to ports of a Pod do, whoever runs it. */
export const podPortSuite = (title: string, start: () => Promise<EchoingPod>): void => {
  describe(title, function () {
    let under: PodStreamsUnderTest;
    let pod: PodTarget;
    let port: number;

    before(async () => {
      ({ under, pod, port } = await start());
    });
    after(() => under.close());

    const dial = async (to = port): Promise<Duplex> => {
      const connection = await under.streams.dial(pod, to, new AbortController().signal);
      await connection.taken;
      return connection;
    };
    const again = (): Duplex | undefined =>
      under.streams.dialKept(pod.uid, port, new AbortController().signal);

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
        expect(
          String(await received(stream, `round ${round}.`.length)).startsWith(`round ${round}.`),
        ).to.equal(true);
        stream.destroy();
      }
      expect(under.proxy.connections).to.equal(links);
      under.streams.gone(pod.uid);
      await eventually(() => again() === undefined, 'the link is let go');
    });

    it('keeps no link on which a port refused', async () => {
      under.streams.gone(pod.uid);
      await rejection(dial(port + 1));
      expect(again()).to.equal(undefined);
    });

    it('rejects with PortUnreachable where nothing takes it', async () => {
      expect(await rejection(dial(port + 1)))
        .to.be.instanceOf(PortUnreachable)
        .with.property('message')
        .that.contains(String(port + 1));
    });
  });
};
