import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';

describe('a daemon with isolation none', function () {
  let daemon: DaemonUnderTest;

  before(async () => {
    daemon = await DaemonUnderTest.start(['--isolation', 'none']);
  });
  after(() => daemon.dispose());

  it('shows that in readiness and warns in its log', async () => {
    const { status, json } = await daemon.client().get('/readyz');
    const { isolation, warnings } = json as {
      readonly isolation?: unknown;
      readonly warnings?: readonly string[];
    };
    expect([status, isolation]).to.deep.equal([200, 'none']);
    expect(warnings?.[0]).to.match(/^sandboxes are not isolated \(isolation: none\)/);
    await within(
      'the log says so',
      () =>
        daemon.run.stderr().includes('sandboxes are not isolated (isolation: none)') || undefined,
    );
  });

  it('creates sandboxes whose /home/sandbox is deleted with them', async () => {
    const client = daemon.client();
    const id = await within(
      'a claim',
      async () =>
        (await client.post('/sandboxes', { poolName: 'default' })).json.sandbox?.['sandboxId'],
    );
    const ran = await client.post(`/sandboxes/${id}/exec`, {
      command: 'pwd; echo x > ~/file; exit 7',
    });
    expect(ran.json).to.include({ exitCode: 7, stderr: '' });
    const home = String(ran.json.stdout).trim();
    expect(existsSync(`${home}/file`)).to.equal(true);
    expect((await client.delete(`/sandboxes/${id}`)).status).to.equal(200);
    await within(
      'the sandbox is no more',
      async () => (await client.get(`/sandboxes/${id}`)).status === 404 || undefined,
    );
    expect(existsSync(home)).to.equal(false);
  });
});
