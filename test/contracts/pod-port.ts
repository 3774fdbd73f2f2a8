import { expect } from 'chai';
import type { Duplex } from 'node:stream';
import { PortUnreachable } from '../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
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

    it('accepts independent connections, and carries bytes both ways unchanged', async () => {
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

    it('rejects with PortUnreachable if nothing listens', async () => {
      expect(await rejection(dial(port + 1)))
        .to.be.instanceOf(PortUnreachable)
        .with.property('message')
        .that.contains(String(port + 1));
    });
  });
};
