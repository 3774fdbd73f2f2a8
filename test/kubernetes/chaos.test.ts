import { expect } from 'chai';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { noFakeTime } from '../support/chaos/faults/clock-jump.ts';
import { sdkRequestOf } from '../support/chaos/by-sdk.ts';
import { FAULT_KINDS } from '../support/chaos/fault-plan.ts';
import { chaosRun } from '../support/chaos/chaos-run.ts';
import { keepEvidence } from '../support/chaos/kept-evidence.ts';
import { noRedis } from '../../local-cluster/redis-server.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const CLAIMS = 240;
const FAULTS = 6;
/** Ends a run that does not get on. On a quiet machine it takes a minute and a half. */
const AT_MOST_MS = 10 * 60_000;
/** A long fault shows no more than a lease that has ended. */
const LONGEST_MS = 7_000;
/** What takes long to mend is for the long runs. */
const TOO_LONG = new Set(['kill etcd', 'etcd restored', 'namespace deleted', 'node unready']);
/**
 * What a run that broke a promise leaves behind, to be looked at: a test's own folder goes with it.
 */
const KEPT = fileURLToPath(new URL('../../.data', import.meta.url));
const KINDS = FAULT_KINDS.filter((kind) => !TOO_LONG.has(kind));

describe('three replicas under load and faults', () => {
  it('keep every promise', async function () {
    this.timeout(0); // of many waits, each of which has an end
    if (process.env['TEST_KUBECONFIG'])
      skipBecause(
        this,
        'needs a control plane of its own, and TEST_KUBECONFIG names another cluster',
      );
    const missing = noRedis ?? noFakeTime;
    if (missing !== undefined) skipBecause(this, missing);
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`      seed ${seed}`);

    const report = await chaosRun({
      seed,
      claims: CLAIMS,
      faults: FAULTS,
      kinds: KINDS,
      longestMs: LONGEST_MS,
      atMostMs: AT_MOST_MS,
    });
    const { claims, disturbances, violations } = report;
    if (violations.length > 0) {
      const folder = join(KEPT, `chaos-${seed}`);
      await keepEvidence(folder, report);
      console.log(`      what is known of it: ${folder}`);
      for (const { kind, from, to } of disturbances)
        console.log(`      ${kind}: ${from.toFixed(0)}-${to.toFixed(0)}`);
    }

    expect(violations.map(({ promise, what }) => `${promise}: ${what}`)).to.deep.equal([]);
    expect(claims).to.be.at.least(CLAIMS);
    // By both ports: of what E2B's SDKs can ask for, every second request is theirs.
    const { calls } = report.evidence;
    const askable = calls.filter(
      ({ asked, answer }) =>
        asked.what === 'claim' && answer?.status === 201 && sdkRequestOf(asked) !== undefined,
    );
    expect(askable).to.have.length.above(CLAIMS / 8);
    expect(askable.filter(({ bySdk }) => bySdk)).to.have.length.above(askable.length / 4);
    expect(disturbances).to.have.length.at.least(FAULTS);
    expect(new Set(disturbances.map(({ kind }) => kind)))
      .to.have.property('size')
      .that.is.at.least(4);
  });
});
