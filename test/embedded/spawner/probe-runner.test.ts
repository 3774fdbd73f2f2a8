import { expect } from 'chai';
import { ProbeRunner } from '../../../src/embedded/spawner/probes/probe-runner.ts';
import { tcpProbe } from '../../support/builders/a-probe.ts';

describe('readiness probes of one tenant that hang', () => {
  it('do not stop those of others', async () => {
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
});
