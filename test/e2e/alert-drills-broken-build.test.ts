import { expect } from 'chai';
import { renameSync } from 'node:fs';
import { aBuild, type Build } from '../support/harness/a-build.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { spawnerPid } from '../support/chaos/kill-rounds.ts';
import { claim, giveBack, stocked } from '../support/harness/on-a-daemon.ts';
import { AlertWatch } from '../support/harness/prometheus/alert-watch.ts';

const PLANTED_SECONDS = 86_399;

/**
 * What a whole build never shows. Its launcher can be taken away. No state machine throws that we
 * know of, so one is made to: a sandbox's, when it learns of an idle timeout of just so many
 * seconds.
 */
describe('alerts on a real daemon with a broken build', function () {
  let build: Build;
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let watch: AlertWatch;

  before(async () => {
    build = aBuild({
      file: 'dist/machines/sandbox/setup.js',
      from: 'keepRecord: assign(({ context, event }) =>',
      to: `keepRecord: assign(({ context, event }) => event.type === 'AMENDED' && event.record.claim.idleTimeoutMs === ${PLANTED_SECONDS * 1_000} ? (() => { throw new Error('planted by a drill'); })() :`,
    });
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '2'], undefined, {
      root: build.root,
    });
    client = daemon.client();
    await stocked(client, 2);
    watch = new AlertWatch({ a: () => daemon.metrics() });
  });

  beforeEach(() => watch.anHourLater());

  after(async () => {
    await daemon?.dispose();
    build.remove();
  });

  /** No spawner can be started meanwhile. */
  const withoutLauncher = async (act: () => Promise<void>): Promise<void> => {
    renameSync(build.launcher, `${build.launcher}.away`);
    try {
      process.kill(await within('a spawner', () => spawnerPid(daemon.dataDir)), 'SIGKILL');
      await act();
    } finally {
      renameSync(`${build.launcher}.away`, build.launcher);
    }
  };

  it('SandpoolMachineThrew: fires after one error of a state machine, and clears', async () => {
    const id = await claim(client);
    expect(await watch.look('SandpoolMachineThrew')).to.equal(false);

    await client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeoutSeconds: PLANTED_SECONDS });
    await watch.fires('SandpoolMachineThrew');
    await within(
      'the log tells why',
      () => daemon.run.stderr().includes('planted by a drill') || undefined,
    );
    await within(
      'it is there again',
      async () =>
        (await client.get(`/sandboxes/${id}`)).json.sandbox?.['status'] === 'Running' || undefined,
    );

    await watch.anHourLater();
    expect(
      (await client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeoutSeconds: 600 })).status,
    ).to.equal(200);
    await watch.clears('SandpoolMachineThrew');
    await giveBack(client, id);
  });

  it('SandpoolMachineBroken: fires while a state machine throws repeatedly, until it is rebuilt by hand', async () => {
    const id = await claim(client);
    expect(await watch.look('SandpoolMachineBroken')).to.equal(false);

    for (let n = 0; n < 5; n++) {
      const isThere = async () =>
        (await client.get(`/sandboxes/${id}`)).json.sandbox?.['status'] === 'Running' || undefined;
      await within('it is there', isThere);
      await client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeoutSeconds: PLANTED_SECONDS });
    }
    await watch.fires('SandpoolMachineBroken');
    await within(
      'the log says that the actor was stopped',
      () => daemon.run.stderr().includes('was stopped') || undefined,
    );

    const admin = daemon.client(daemon.adminKey);
    // as its runbook begins
    const { json } = await admin.get('/debug/actors?state=broken');
    expect(json.items?.map(({ key }) => key)).to.deep.equal([id]);
    expect((await admin.post(`/debug/actors/sandbox/${id}/rebuild`, {})).status).to.equal(200);
    expect((await client.get(`/sandboxes/${id}`)).json.sandbox).to.have.property(
      'status',
      'Running',
    );
    await watch.clears('SandpoolMachineBroken');
    await giveBack(client, id);
  });

  it('SandpoolNotReady, SandpoolNoneReady and SandpoolRequestsFail: fire without a launcher, and clear', async () => {
    const id = await claim(client);
    const alerts = ['SandpoolNotReady', 'SandpoolNoneReady', 'SandpoolRequestsFail'];
    expect((await client.post(`/sandboxes/${id}/exec`, { command: 'true' })).status).to.equal(200);
    for (const alert of alerts) expect(await watch.look(alert), alert).to.equal(false);

    await withoutLauncher(async () => {
      await watch.fires('SandpoolNotReady');
      await watch.fires('SandpoolNoneReady');
      expect((await client.get('/readyz')).status).to.equal(503);
      await eventually(async () => {
        expect((await client.post(`/sandboxes/${id}/exec`, { command: 'true' })).status).to.equal(
          503,
        );
        return await watch.look('SandpoolRequestsFail');
      }, 'SandpoolRequestsFail fires');
    });
    await watch.clears('SandpoolNotReady');
    await watch.clears('SandpoolNoneReady');

    await watch.anHourLater();
    expect((await client.post(`/sandboxes/${id}/exec`, { command: 'true' })).status).to.equal(200);
    await watch.clears('SandpoolRequestsFail');
    await giveBack(client, id);
  });

  it('SandpoolOutboxStuck: fires after a minute without progress of launches, and clears', async () => {
    await stocked(client, 2);
    expect(await watch.look('SandpoolOutboxStuck')).to.equal(false);

    await withoutLauncher(async () => {
      await client.put('/sandboxpools/default', { replicas: 4 });
      await watch.fires('SandpoolOutboxStuck', 120_000);
    });
    await watch.clears('SandpoolOutboxStuck');
    await stocked(client, 4);
  });
});
