import { expect } from 'chai';
import { NotJoinable, type ProbeOutcome } from '../../src/contracts/sandbox-driver.ts';
import type { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { execProbe, httpProbe, tcpProbe } from '../support/builders/a-probe.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { permitted } from '../support/builders/instance-orders.ts';
import { onRealPods, webOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';

const PORT = 7_000;
/** Asks often, and waits for a machine that is busy. */
const PATIENT = { periodMs: 1_000, timeoutMs: NEVER_COMES_MS };
type Probe = ReturnType<typeof execProbe>;

describe('readiness probes on a real node', function () {
  const onPods = onRealPods(onTheRealNode());
  let pods: PodDriver;
  before(() => {
    pods = onPods();
  });

  it('make an instance ready that its server answers, by the kubelet and on request', async () => {
    await Promise.all(
      [
        httpProbe(PORT, '/', PATIENT),
        tcpProbe(PORT, PATIENT),
        execProbe(['test', '-e', '/proc/1'], PATIENT),
      ].map(async (readinessProbe) => {
        const { id } = await pods.claimed(webOrder(pods, PORT, { readinessProbe }));
        expect(await pods.driver.probe(id)).to.deep.equal([{}]);
      }),
    );
  });

  it('report their results for an instance that is not ready', async () => {
    const says = async (readinessProbe: Probe): Promise<string> => {
      const { id } = await pods.driver.launch(webOrder(pods, PORT, { readinessProbe }), permitted);
      let seen: readonly ProbeOutcome[] = [];
      await eventually(async () => {
        seen = await pods.driver.probe(id).catch((error: unknown) => {
          if (error instanceof NotJoinable) return [];
          throw error;
        });
        return seen.length > 0;
      }, 'its container runs');
      expect(pods.log.kinds(id)).to.not.include('available');
      return String(seen[0]?.failure);
    };
    expect(await says(execProbe(['sh', '-c', 'echo some words >&2; exit 7'], PATIENT))).to.equal(
      'sh ended with 7: some words',
    );
    expect(await says(execProbe(['sleep', '60']))).to.equal('it took longer than 1 s');
    expect(await says(tcpProbe(PORT + 1, PATIENT))).to.contain(String(PORT + 1));
  });
});
