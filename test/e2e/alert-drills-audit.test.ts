import { expect } from 'chai';
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { auditFiles } from '../../src/services/audit/audit-folder.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { seriesOf } from '../support/harness/exposition.ts';
import { AlertWatch } from '../support/harness/prometheus/alert-watch.ts';
import { line } from '../support/harness/line.ts';

/** As alert-drills.test.ts, for what needs an audit of its own. */
describe('the audit alert on a real daemon', function () {
  let daemon: DaemonUnderTest;
  let watch: AlertWatch;
  const value = async (
    name: string,
    labels: Readonly<Record<string, string>> = {},
  ): Promise<number> => seriesOf(await daemon.metrics()).value(name, labels) ?? Number.NaN;
  const folder = (): string => join(daemon.dataDir, 'audit');

  before(async () => {
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 0 --audit-file-bytes 65536`);
    watch = new AlertWatch({ a: () => daemon.metrics() });
  });
  beforeEach(() => watch.anHourLater());
  after(() => daemon.dispose());

  it('SandpoolAuditLost: fires for a missing folder, and clears once it is back', async () => {
    const client = daemon.client();
    expect(await watch.look('SandpoolAuditLost')).to.equal(false);

    renameSync(folder(), `${folder()}-away`);
    try {
      await within('it shows', async () => {
        // Until a file is full; what is refused has a bound.
        for (let writes = 0; writes < 50; writes += 1)
          expect((await client.put('/sandboxpools/default', { replicas: 0 })).status).to.equal(200);
        return (
          ((await value('sandpool_audit_unwritable_seconds')) > 0 &&
            (await value('sandpool_audit_waiting_lines')) > 0) ||
          undefined
        );
      });
      await watch.fires('SandpoolAuditLost', 120_000);
    } finally {
      renameSync(`${folder()}-away`, folder());
    }

    await watch.clears('SandpoolAuditLost');
    await within(
      'it goes',
      async () =>
        ((await value('sandpool_audit_unwritable_seconds')) === 0 &&
          (await value('sandpool_audit_waiting_lines')) === 0) ||
        undefined,
    );
    expect(await value('sandpool_audit_lines_total', { outcome: 'lost' })).to.equal(0);
    expect((await daemon.cli(['audit', 'verify'])).code).to.equal(0);
  });

  it('SandpoolAuditLost: fires for lines lost during a restart of the daemon', async () => {
    expect(await watch.look('SandpoolAuditLost')).to.equal(false);
    const client = daemon.client();
    // The last file has some lines, and room for that of the end, so that all is in one.
    await within('the last file is begun', async () => {
      await client.put('/sandboxpools/default', { replicas: 0 });
      const { size } = statSync(auditFiles(folder()).at(-1) ?? '');
      return (size > 4_096 && size < 40_000) || undefined;
    });
    expect(await daemon.stop()).to.equal(0);
    const last = auditFiles(folder()).at(-1) ?? '';
    writeFileSync(
      last,
      `${readFileSync(last, 'utf8').trimEnd().split('\n').slice(0, -2).join('\n')}\n`,
    );

    await daemon.start();
    expect(await value('sandpool_audit_lines_total', { outcome: 'missing' })).to.equal(2);
    await watch.fires('SandpoolAuditLost');

    await daemon.stop();
    await daemon.start();
    await watch.anHourLater();
    await watch.clears('SandpoolAuditLost');
    expect(await value('sandpool_audit_lines_total', { outcome: 'missing' })).to.equal(0);
  });
});
