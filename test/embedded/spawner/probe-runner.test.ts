import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { ProbeRunner } from '../../../src/embedded/spawner/probes/probe-runner.ts';
import { aForwarder } from '../../support/fakes/a-forwarder.ts';
import { httpProbe, tcpProbe } from '../../support/builders/a-probe.ts';

describe('hanging readiness probes of one tenant', () => {
  it('do not block those of others', async () => {
    const hung: string[] = [];
    const forwarders = {
      socketOf: (id: string): Promise<string> => {
        if (id.startsWith('other')) return Promise.reject(new Error('nothing listens'));
        hung.push(id);
        return new Promise(() => undefined);
      },
    };
    const probes = new ProbeRunner({
      forwarders: forwarders as never,
      launchers: undefined as never,
      placeOf: () => undefined,
    });
    for (let n = 0; n < 200; n++) void probes.run(`hanging-${n}`, 'ann', tcpProbe(80));

    expect(await probes.run('other', 'bob', tcpProbe(80))).to.equal('nothing listens');
    expect(hung.length).to.be.within(1, 31);
  });

  it('end at the maximum time, whatever their timeout says', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const forwarder = await aForwarder();
    const probes = new ProbeRunner({
      forwarders: { socketOf: async () => forwarder.socket } as never,
      launchers: undefined as never,
      placeOf: () => undefined,
      longestMs: 50,
    });
    const timeoutMs = 300_000;

    expect(await probes.run('hanging', 'ann', httpProbe(port, '/', { timeoutMs }))).to.equal(
      'it took longer than 0.05 s',
    );
    await forwarder.stop();
    silent.close();
  });
});
