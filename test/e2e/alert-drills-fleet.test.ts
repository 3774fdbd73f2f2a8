import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { CuttableWay } from '../support/harness/cuttable-way.ts';
import { eventually } from '../support/harness/eventually.ts';
import { seriesOf } from '../support/harness/exposition.ts';
import { AlertWatch } from '../support/harness/prometheus/alert-watch.ts';

/** As alert-drills.test.ts, for a manager and its worker. */
describe('fleet alerts on real daemons', function () {
  let hub: DaemonUnderTest;
  /** Leads to `hub`, wherever it listens. */
  let way: CuttableWay;
  let west: DaemonUnderTest;
  let watch: AlertWatch;

  before(async () => {
    const flags = ['--default-pool-replicas', '0', '--log-level', 'error'];
    hub = await DaemonUnderTest.start(['--role', 'manager', '--cluster-id', 'hub', ...flags]);
    const file = join(hub.dataDir, 'join.token');
    const { stdout } = await hub.cli(['clusters', 'join-token', 'west']);
    writeFileSync(file, stdout, { mode: 0o600 });
    expect(seriesOf(await hub.metrics()).named('sandpool_cluster_connected')).to.deep.equal([]);
    way = await CuttableWay.to(hub.run.address);
    west = await DaemonUnderTest.start([
      ...['--cluster-id', 'west', '--fleet-managers', way.url],
      ...['--fleet-join-token-file', file, ...flags],
    ]);
    watch = new AlertWatch({ hub: () => hub.metrics(), west: () => west.metrics() });
    await connected();
  });
  after(async () => {
    await west?.dispose();
    await hub?.dispose();
    way?.stop();
  });

  /** It is told of, and neither alert fires. */
  const connected = async (): Promise<void> => {
    await eventually(async () => {
      const series = seriesOf(await hub.metrics());
      return series.value('sandpool_cluster_connected', { cluster_id: 'west' }) === 1;
    }, 'west is connected');
    await watch.clears('SandpoolClusterNotConnected');
    await watch.clears('SandpoolManagerNotLinked');
  };

  it('SandpoolClusterNotConnected: fires for a killed worker, and clears after its restart', async () => {
    await west.kill();
    await watch.fires('SandpoolClusterNotConnected');
    expect(await watch.look('SandpoolManagerNotLinked')).to.equal(false);

    await west.start();
    await connected();
  });

  it("SandpoolClusterNotConnected: fires only on the manager if the worker's admin disconnects it", async () => {
    expect((await west.cli(['managers', 'cut-off', '--admin'])).code).to.equal(0);
    await watch.fires('SandpoolClusterNotConnected');
    expect(await watch.look('SandpoolManagerNotLinked')).to.equal(false);
    const series = seriesOf(await west.metrics());
    expect(series.value('sandpool_manager_links')).to.equal(0);
    expect(series.value('sandpool_manager_cut_off')).to.equal(1);

    expect((await west.cli(['managers', 'let-in', '--admin'])).code).to.equal(0);
    await connected();
  });

  it('SandpoolManagerNotLinked: fires for a killed manager, and clears after its restart', async () => {
    await hub.kill();
    await watch.fires('SandpoolManagerNotLinked');
    const dialsFailed = async (): Promise<boolean> =>
      (seriesOf(await west.metrics()).value('sandpool_manager_dials_failed_total') ?? 0) > 0;
    await eventually(dialsFailed, 'it dials in vain');

    way.leadTo(await hub.start());
    await connected();
  });

  it('SandpoolClusterNotConnected: ignores a removed cluster', async () => {
    await west.kill();
    await watch.fires('SandpoolClusterNotConnected');
    expect((await hub.cli(['clusters', 'remove', 'west'])).code).to.equal(0);
    await watch.clears('SandpoolClusterNotConnected');
  });
});
