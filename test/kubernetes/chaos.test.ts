import { expect } from 'chai';
import { noFakeTime } from '../support/chaos/faults/clock-jump.ts';
import { chaosRun } from '../support/chaos/chaos-run.ts';
import { noRedis } from '../../local-cluster/redis-server.ts';
import { skipBecause } from '../support/skip-because.ts';

const CLAIMS = 1_000;
const FAULTS = 6;
/** For a machine that has other work; on a quiet one it takes two. */
const AT_MOST_MS = 10 * 60_000;
const KINDS = ['kill replica', 'stop replica', 'kill API server', 'kill Redis', 'bad link to the API server', 'delete Pods', 'clock jump'];

describe('three replicas under load and faults', () => {
  it('keep every promise', async function () {
    this.timeout(AT_MOST_MS + 5 * 60_000);
    if (process.env['TEST_KUBECONFIG']) skipBecause(this, 'needs a control plane of its own, and TEST_KUBECONFIG names another cluster');
    const missing = noRedis ?? noFakeTime;
    if (missing !== undefined) skipBecause(this, missing);
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`      seed ${seed}`);

    const { claims, disturbances, violations } = await chaosRun({ seed, claims: CLAIMS, faults: FAULTS, kinds: KINDS, atMostMs: AT_MOST_MS });

    expect(violations.map(({ promise, what }) => `${promise}: ${what}`)).to.deep.equal([]);
    expect(claims).to.be.at.least(CLAIMS);
    expect(disturbances).to.have.length.at.least(FAULTS);
    expect(new Set(disturbances.map(({ kind }) => kind))).to.have.property('size').that.is.at.least(4);
  });
});
