import { expect } from 'chai';
import {
  probesOf,
  Readiness,
  type NamedProbe,
} from '../../../src/embedded/spawner/probes/readiness.ts';
import type { ReadinessProbe } from '../../../src/model/templates/readiness-probe.ts';
import type { Vitals } from '../../../src/model/sandbox.ts';
import { aProbe, execProbe, tcpProbe } from '../../support/builders/a-probe.ts';
import { aDefinition } from '../../support/builders/instance-orders.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';

const STARTED: Vitals = { kind: 'available', startedAt: 7 };
const GONE: Vitals = { kind: 'gone', exitCode: 0, reason: 'it ended' };

/** Probes whose outcome the test decides, on a clock that it moves. */
class Probed {
  readonly clock = new TestClock();
  readonly said: Vitals[] = [];
  readonly noted: string[] = [];
  runs = 0;
  /** Why a probe fails, by its action's kind; others pass. */
  failures: Partial<Record<ReadinessProbe['action']['kind'], string>> = {};
  random = 0.5;
  readonly readiness = new Readiness({
    run: async (_id, _tenant, { action }) => {
      this.runs += 1;
      return this.failures[action.kind];
    },
    report: (_id, vitals) => this.said.push(vitals),
    noteReady: (id) => this.noted.push(id),
    later: (milliseconds, act) => this.clock.at(this.clock.now() + milliseconds, act),
    random: () => this.random,
  });

  async start(probes: readonly NamedProbe[], wasReady = false): Promise<this> {
    this.readiness.expect('i', { tenant: 'a', probes, wasReady });
    this.readiness.take('i', STARTED);
    return await this.pass(0);
  }

  async pass(milliseconds: number): Promise<this> {
    // In steps, so that what one run arms is called by the next.
    for (let left = milliseconds; ; left -= 50) {
      this.clock.advance(Math.min(50, Math.max(0, left)));
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      if (left <= 50) return this;
    }
  }
}

const probe = execProbe(['true']);

describe('the readiness of a probed sandbox', () => {
  it('starts as starting until its probes pass, with the reason', async () => {
    const probed = new Probed();
    probed.failures = { exec: 'not yet' };
    await probed.start([{ probe }]);
    expect(probed.said).to.deep.equal([{ kind: 'starting', reason: 'readinessProbe: not yet' }]);
    expect(probed.readiness.vitalsOf('i')).to.deep.equal({
      kind: 'starting',
      reason: 'readinessProbe: not yet',
    });
    probed.failures = {};
    await probed.pass(10_000);
    expect(probed.said.slice(1)).to.deep.equal([STARTED]);
    expect(probed.noted).to.deep.equal(['i']);
  });

  it('is checked more often than each period while it is not ready', async () => {
    const probed = new Probed();
    probed.failures = { exec: 'not yet' };
    await probed.start([{ probe }]);
    await probed.pass(1_000);
    expect(probed.runs).to.be.within(4, 6);
    await probed.pass(60_000);
    expect(probed.runs).to.be.within(11, 16);
  });

  it('begins after its initial delay', async () => {
    const probed = await new Probed().start([
      { probe: execProbe(['true'], { initialDelayMs: 5_000 }) },
    ]);
    await probed.pass(4_900);
    expect(probed.runs).to.equal(0);
    await probed.pass(200);
    expect(probed.said).to.deep.equal([STARTED]);
  });

  it('needs the configured number of passes and failures in a row', async () => {
    const probed = await new Probed().start([
      { probe: execProbe(['true'], { successThreshold: 3, failureThreshold: 2, periodMs: 1_000 }) },
    ]);
    expect(probed.said).to.deep.equal([]);
    await probed.pass(500);
    expect(probed.said).to.deep.equal([STARTED]);
    probed.failures = { exec: 'busy' };
    await probed.pass(1_100);
    expect(probed.said).to.have.lengthOf(1);
    await probed.pass(1_100);
    expect(probed.said[1]).to.deep.equal({
      kind: 'unavailable',
      startedAt: 7,
      reason: 'readinessProbe: busy',
    });
  });

  it('is available only while all probes pass, and reports only changes', async () => {
    const probed = await new Probed().start([
      { probe },
      { endpoint: 'web', probe: tcpProbe(80, { failureThreshold: 1 }) },
    ]);
    await probed.pass(100_000);
    expect(probed.said).to.deep.equal([STARTED]);
    probed.failures = { tcp: 'port 80: nothing listens on it' };
    await probed.pass(100_000);
    expect(probed.said.slice(1)).to.deep.equal([
      {
        kind: 'unavailable',
        startedAt: 7,
        reason: 'readinessProbe of endpoint web: port 80: nothing listens on it',
      },
    ]);
    probed.failures = {};
    await probed.pass(100_000);
    expect(probed.said.slice(2)).to.deep.equal([STARTED]);
    expect(probed.noted).to.deep.equal(['i']);
  });

  it('is checked once per period, plus or minus a tenth', async () => {
    for (const [random, period] of [
      [0, 9_000],
      [1, 11_000],
    ] as const) {
      const probed = new Probed();
      probed.random = random;
      await probed.start([{ probe }]);
      await probed.pass(period - 100);
      expect(probed.runs).to.equal(1);
      await probed.pass(200);
      expect(probed.runs).to.equal(2);
    }
  });

  it('from a former spawner is unavailable until the sandbox passes again, if it had passed', async () => {
    const ready = new Probed();
    ready.readiness.expect('i', { tenant: 'a', probes: [{ probe }], wasReady: true });
    ready.readiness.take('i', STARTED);
    expect(ready.readiness.vitalsOf('i')).to.deep.include({ kind: 'unavailable' });
    await ready.pass(0);
    expect(ready.said).to.deep.equal([STARTED]);
    expect(ready.noted).to.deep.equal([]);
  });

  it('is no longer checked once the sandbox is gone', async () => {
    const probed = await new Probed().start([{ probe }]);
    probed.readiness.take('i', GONE);
    await probed.pass(100_000);
    expect(probed.said).to.deep.equal([STARTED, GONE]);
    expect(probed.runs).to.equal(1);
    expect(probed.clock.waiting).to.equal(0);
  });

  it('can be requested without a change', async () => {
    const probed = await new Probed().start([{ probe }, { endpoint: 'web', probe: tcpProbe(80) }]);
    probed.failures = { tcp: 'refused' };
    const [one, other] = await Promise.all([
      probed.readiness.check('i'),
      probed.readiness.check('i'),
    ]);
    expect(one).to.deep.equal([{}, { endpoint: 'web', failure: 'refused' }]);
    expect(other).to.equal(one);
    expect(probed.said).to.deep.equal([STARTED]);
    expect(await probed.readiness.check('unknown')).to.deep.equal([]);
  });

  it('equals the state of the process without probes', () => {
    const probed = new Probed();
    probed.readiness.take('i', STARTED);
    expect(probed.said).to.deep.equal([STARTED]);
    expect(probed.clock.waiting).to.equal(0);
    expect(probesOf(aDefinition())).to.equal(undefined);
    expect(
      probesOf(
        aDefinition(
          { readinessProbe: probe },
          {
            endpoints: {
              web: { port: 80, scheme: 'http', readinessProbe: aProbe({ kind: 'tcp', port: 80 }) },
              raw: { port: 81, scheme: 'http' },
            },
          },
        ),
      ),
    ).to.deep.equal([{ probe }, { endpoint: 'web', probe: aProbe({ kind: 'tcp', port: 80 }) }]);
  });
});
