import { expect } from 'chai';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { auditFiles } from '../../src/audit/audit-folder.ts';
import { DaemonUnderTest, within } from '../support/a-daemon.ts';
import { seriesOf } from '../support/exposition.ts';

describe('what the alert about the audit looks at, on a real daemon', function () {
  this.timeout(300_000);
  let daemon: DaemonUnderTest;
  const value = async (name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> => seriesOf(await daemon.metrics()).value(name, labels) ?? Number.NaN;
  const folder = (): string => join(daemon.dataDir, 'audit');

  before(async () => { daemon = await DaemonUnderTest.start(['--default-pool-replicas', '0', '--audit-file-bytes', '65536']); });
  after(() => daemon.dispose());

  it('SandpoolAuditLost: a folder that is gone, and comes again', async () => {
    const client = daemon.client();
    expect(await value('sandpool_audit_unwritable_seconds')).to.equal(0);

    renameSync(folder(), `${folder()}-away`);
    await within(120_000, 'it shows', async () => {
      await Promise.all(Array.from({ length: 50 }, () => client.post('/sandboxes', { poolName: 'nowhere' }))); // until a file is full
      return (await value('sandpool_audit_unwritable_seconds')) > 0 && (await value('sandpool_audit_waiting_lines')) > 0 || undefined;
    });
    renameSync(`${folder()}-away`, folder());

    await within(60_000, 'it goes', async () => (await value('sandpool_audit_unwritable_seconds')) === 0 && (await value('sandpool_audit_waiting_lines')) === 0 || undefined);
    expect(await value('sandpool_audit_lines_total', { outcome: 'lost' })).to.equal(0);
    expect((await daemon.cli(['audit', 'verify'])).code).to.equal(0);
  });

  it('SandpoolAuditLost: lines that are gone when the daemon comes again', async () => {
    expect(await value('sandpool_audit_lines_total', { outcome: 'missing' })).to.equal(0);
    for (let writes = 0; writes < 5; writes += 1) await daemon.client().post('/sandboxes', { poolName: 'nowhere' });
    expect(await daemon.stop()).to.equal(0);
    const last = auditFiles(folder()).at(-1) ?? '';
    writeFileSync(last, `${readFileSync(last, 'utf8').trimEnd().split('\n').slice(0, -2).join('\n')}\n`);

    await daemon.start();
    expect(await value('sandpool_audit_lines_total', { outcome: 'missing' })).to.equal(2);

    await daemon.stop();
    await daemon.start();
    expect(await value('sandpool_audit_lines_total', { outcome: 'missing' })).to.equal(0);
  });
});
