import { expect } from 'chai';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { TerminalUnderTest } from '../support/harness/a-terminal.ts';
import { claim, stocked } from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

interface Line {
  readonly kind: string;
  readonly operation?: string;
  readonly after?: string;
  readonly via?: string;
  readonly user?: string;
  readonly status?: number;
}

describe('the audit log of a daemon', function () {
  let daemon: DaemonUnderTest;
  before(async () => {
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 2 --audit-stdout on`);
  });
  after(() => daemon.dispose());

  const shown = async (query = ''): Promise<readonly Line[]> =>
    (
      JSON.parse(
        (await daemon.client(daemon.adminKey).get(`/admin/audit?limit=1000${query}`)).text,
      ) as { readonly items: readonly Line[] }
    ).items;
  const shows = (query: string): Promise<Line> =>
    within(`the audit shows ${query}`, async () => (await shown(query))[0]);

  it('contains claims, terminals and backups with their callers', async () => {
    const client = daemon.client();
    await stocked(client, 2);
    const id = await claim(client);
    const terminal = await TerminalUnderTest.open(daemon, client, id);
    terminal.socket.close();
    await terminal.closed;
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-audited-'));
    expect((await daemon.cli(['backup', join(folder, 'backup.tar.gz')])).code).to.equal(0);
    rmSync(folder, { recursive: true });

    expect(await shows('&operation=claimSandbox')).to.deep.include({
      status: 201,
      user: 'default',
    });
    expect(await shows('&operation=openTerminal')).to.deep.include({
      status: 101,
      user: 'default',
      params: { sandboxId: id },
    });
    expect(await shows('&operation=backup'))
      .to.include({ via: 'control-socket' })
      .and.not.have.property('user');
  });

  it('continues after a kill -9, reports it, and is complete', async () => {
    await shows('&operation=claimSandbox');
    await daemon.kill();
    await daemon.start();
    await daemon.client().post('/sandboxes', { poolName: 'nowhere' });
    await shows('&operation=claimSandbox&outcome=refused');
    const verified = await daemon.cli(['audit', 'verify']);

    expect(
      (await shown()).filter(({ kind }) => kind === 'begin').map(({ after }) => after),
    ).to.deep.equal(['crash', undefined]);
    expect([verified.code, verified.stderr]).to.deep.equal([0, '']);
    const copied = daemon.run.stdout().match(/^\{.*"hash":"[0-9a-f]{64}"\}$/gm) ?? [];
    expect(copied.map((text) => (JSON.parse(text) as { kind: string }).kind)).to.include.members([
      'begin',
      'write',
    ]);
    expect(verified.stdout)
      .to.include('1 run did not stop cleanly')
      .and.include('the chain is complete');
  });
});
