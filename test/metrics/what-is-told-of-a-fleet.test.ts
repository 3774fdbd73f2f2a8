import { expect } from 'chai';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tellOfClusters, tellOfManagers } from '../../src/daemon/fleet/fleet-metrics.ts';
import type { RefusedReason } from '../../src/fleet/link/manager-link.ts';
import type { WorkerLinks } from '../../src/fleet/link/worker-links.ts';
import { PassedRequests } from '../../src/fleet/routing/pass-on.ts';
import { FleetUnderTest } from '../fleet/a-fleet.ts';
import { HELLO } from '../fleet/hostile-ends.ts';
import { MemoryMetrics } from '../support/fakes/memory-metrics.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';

const serve = (): void => undefined;

describe('the metrics of a fleet', () => {
  let clock: TestClock;
  let fleet: FleetUnderTest;
  let metrics: MemoryMetrics;

  beforeEach(async () => {
    [clock, metrics] = [new TestClock(), new MemoryMetrics()];
    fleet = await FleetUnderTest.start({ clock });
  });
  afterEach(() => fleet.stop());

  describe('at a manager', () => {
    let passed: PassedRequests;

    beforeEach(() => {
      passed = new PassedRequests();
      const { links } = fleet;
      tellOfClusters(metrics, { links, passed, clock });
    });

    const of = (clusterId: string): readonly unknown[] => {
      const labels = { cluster_id: clusterId };
      return [
        metrics.shown('sandpool_cluster_connected', labels),
        metrics.shown('sandpool_cluster_links', labels),
        metrics.shown('sandpool_cluster_heartbeat_age_seconds', labels),
        ...['answered', 'unavailable'].map((outcome) =>
          metrics.shown('sandpool_cluster_requests_total', { ...labels, outcome }),
        ),
      ];
    };
    const latency = (): number | undefined =>
      metrics.shown('sandpool_cluster_latency_seconds', { cluster_id: 'w1' });
    const refused = (reason: RefusedReason): number | undefined =>
      metrics.shown('sandpool_links_refused_total', { reason });

    it('show the link of each joined cluster, until it is removed', async () => {
      const nothing = [undefined, undefined, undefined, undefined, undefined];
      await fleet.registry.invite('w1');
      expect(of('w1'), 'it was invited alone').to.deep.equal(nothing);
      const { links } = await fleet.join({ clusterId: 'w1', serve });
      await eventually(() => latency() !== undefined, 'a heartbeat came back');
      expect(latency()).to.be.within(0, 10);
      expect(of('w1')).to.deep.equal([1, 1, 0, 0, 0]);

      links.stop();
      await eventually(() => !fleet.links.find('w1'), 'it is cut');
      clock.advance(60_000);
      passed.note('w1', 'unavailable');
      expect(of('w1')).to.deep.equal([0, 0, 60, 0, 1]);
      expect(latency()).to.equal(undefined);

      await fleet.registry.remove('w1');
      await eventually(() => !fleet.registry.find('w1'), 'it is removed');
      expect(of('w1')).to.deep.equal(nothing);
    });

    it('count each refused link, by reason', async () => {
      expect([refused('not-joined'), refused('not-opened')]).to.deep.equal([0, 0]);
      const { token } = await fleet.registry.invite('w1');
      const first = fleet.worker({ clusterId: 'w1', serve, joinToken: token });
      await fleet.linked('w1');
      fleet.worker({ clusterId: 'w1', serve, joinToken: token }); // which is used up
      await eventually(() => refused('not-joined') === 1, 'it is refused');
      first.links.stop();
      await eventually(() => !fleet.links.find('w1'), 'one is cut that was open');
      const nobody = connect(fleet.port, '127.0.0.1');
      nobody.write(HELLO);
      await once(nobody, 'data');
      nobody.destroy();
      await eventually(() => refused('not-opened') === 1, 'it did not open');
      expect([refused('not-joined'), refused('not-opened')]).to.deep.equal([1, 1]);
    });
  });

  it('show on a worker the status of each of its managers', async () => {
    const here = `ws://127.0.0.1:${fleet.port}`;
    const [too, nowhere] = [`ws://localhost:${fleet.port}`, 'ws://127.0.0.1:1'];
    let links: WorkerLinks | undefined;
    const access = { isCutOff: false };
    const addresses = [here, too, nowhere];
    tellOfManagers(metrics, { addresses, standings: () => links?.standings, access });
    const of = (manager: string): readonly unknown[] => [
      metrics.shown('sandpool_manager_links', { manager }),
      metrics.shown('sandpool_manager_dials_failed_total', { manager }),
      metrics.shown('sandpool_manager_cut_off', { manager }),
    ];
    expect(addresses.map(of), 'before it dials').to.deep.equal([
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ]);

    ({ links } = await fleet.join({ clusterId: 'w1', serve, others: [too, nowhere] }));
    const stands = (): boolean => of(too)[0] === 1 && of(here)[0] === 1 && of(nowhere)[1] === 1;
    await eventually(stands, 'one link, of which both addresses know');
    expect([of(here), of(too), of(nowhere)]).to.deep.equal([
      [1, 0, 0],
      [1, 0, 0],
      [0, 1, 0],
    ]);
    clock.advance(1_000);
    await eventually(() => of(nowhere)[1] === 2, 'it dials again');
    [links, access.isCutOff] = [undefined, true];
    expect(of(here)).to.deep.equal([0, 0, 1]);
  });
});
