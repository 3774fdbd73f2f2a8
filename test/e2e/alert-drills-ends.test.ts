import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../../src/embedded/store/database-library.ts';
import { aCertificate, type Certificate } from '../../local-cluster/a-certificate.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { AlertWatch } from '../support/harness/prometheus/alert-watch.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { line } from '../support/harness/line.ts';

/** As alert-drills.test.ts, for a daemon that speaks TLS. */
describe('expiry alerts for keys, certificates and disks on a real daemon', function () {
  let daemon: DaemonUnderTest | undefined;
  let [short, long]: (Certificate | undefined)[] = [];
  let folder = '';
  let isMounted = false;

  before(function () {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-small-'));
    [short, long] = [aCertificate({ days: 13 }), aCertificate({ days: 60 })];
    if (!short || !long) skipBecause(this, 'there is no openssl to make a certificate with');
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'sandpool-test', folder], {
        stdio: 'ignore',
      });
      isMounted = true;
    } catch {
      // the drill of the disk says so
    }
  });
  after(async () => {
    await daemon?.dispose();
    if (isMounted) execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true, force: true });
    for (const made of [short, long]) if (made) rmSync(made.folder, { recursive: true });
  });

  it('SandpoolCertificateEnds: fires for a certificate of 13 days, and clears with one of 60', async () => {
    if (!short || !long) throw new Error('no certificates');
    daemon = await DaemonUnderTest.start(
      line`--default-pool-replicas 0
      --tls-cert-file ${short.certFile} --tls-key-file ${short.keyFile}`,
      folder,
    );
    const running = daemon;
    const watch = new AlertWatch({ a: () => running.metrics() });
    await watch.fires('SandpoolCertificateEnds');

    copyFileSync(long.certFile, short.certFile);
    copyFileSync(long.keyFile, short.keyFile);
    await watch.clears('SandpoolCertificateEnds');
  });

  it('SandpoolDiskFills: fires while a file uses up the free space, and clears', async function () {
    if (!isMounted) skipBecause(this, 'needs the right to mount a tmpfs');
    if (!daemon) throw new Error('no daemon');
    const running = daemon;
    const watch = new AlertWatch({ a: () => running.metrics() });
    expect(await watch.look('SandpoolDiskFills')).to.equal(false);

    writeFileSync(join(folder, 'filler'), Buffer.alloc(29.5 * 2 ** 20));
    await watch.fires('SandpoolDiskFills');
    rmSync(join(folder, 'filler'));
    await watch.clears('SandpoolDiskFills');
  });

  it('SandpoolKeyEnds: fires for a key of 13 days, and clears with one of 60', async () => {
    if (!daemon) throw new Error('no daemon');
    const running = daemon;
    const watch = new AlertWatch({ a: () => running.metrics() });
    expect(await watch.look('SandpoolKeyEnds')).to.equal(false);

    await withKeyThatEndsIn(running, 13);
    await watch.fires('SandpoolKeyEnds');
    await withKeyThatEndsIn(running, 60);
    await watch.clears('SandpoolKeyEnds');
  });

  it('SandpoolApprovalWaits: fires for an undecided request, and clears when it is gone', async () => {
    if (!daemon) throw new Error('no daemon');
    const running = daemon;
    const watch = new AlertWatch({ a: () => running.metrics() });
    expect(await watch.look('SandpoolApprovalWaits')).to.equal(false);

    await withRequestThatWaits(running, 6 * 60_000);
    await watch.fires('SandpoolApprovalWaits');
    await withRequestThatWaits(running, 0);
    await watch.clears('SandpoolApprovalWaits');
  });
});

/** As if a request had come so many milliseconds ago, and nobody had decided. */
const withRequestThatWaits = async (daemon: DaemonUnderTest, forMs: number): Promise<void> => {
  await daemon.stop();
  const createdAt = Date.now() - forMs;
  const database = connect(join(daemon.dataDir, 'sandpool.db'), { busyTimeoutMs: 10_000 });
  database
    .prepare(`
    INSERT OR REPLACE INTO approvals SELECT '019b7c4e-0000-7000-8000-000000000001', last + 1, ?
    FROM record_revision`)
    .run(JSON.stringify({ ...A_REQUEST, createdAt, expiresAt: createdAt + 24 * 60 * 60_000 }));
  database.close();
  await daemon.start();
};

const A_REQUEST = {
  id: '019b7c4e-0000-7000-8000-000000000001',
  principal: {
    namespace: 'default',
    team: 'default',
    user: 'default',
    keyId: 'k123456789012345',
    role: 'user',
    persons: ['default'],
  },
  operation: 'deletePool',
  onceOnly: false,
  method: 'DELETE',
  path: '/sandboxpools/default',
  namespace: 'default',
  query: '',
  headers: {},
  summary: '',
  binding: 'b',
  status: 'pending',
};

/** As if a key had been made long ago, for a year. */
const withKeyThatEndsIn = async (daemon: DaemonUnderTest, days: number): Promise<void> => {
  await daemon.stop();
  const endsAt = Date.now() + days * 24 * 60 * 60_000;
  const database = connect(join(daemon.dataDir, 'sandpool.db'), { busyTimeoutMs: 10_000 });
  database
    .prepare(`
    INSERT OR REPLACE INTO api_keys SELECT 'k123456789012345', revision + 100, namespace, 'old',
      json_set(body, '$.keyId', 'k123456789012345', '$.shortName', 'old', '$.issuedAt', ?, '$.expiresAt', ?)
    FROM api_keys WHERE json_extract(body, '$.role') = 'user' LIMIT 1`)
    .run(endsAt - 365 * 24 * 60 * 60_000, endsAt);
  database.close();
  await daemon.start();
};
