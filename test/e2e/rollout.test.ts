import { expect } from 'chai';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { claim, stocked } from '../support/harness/on-a-daemon.ts';
import { RollingPool } from '../support/harness/rolling-pool.ts';
import { line } from '../support/harness/line.ts';

describe('a rollout of real sandboxes', function () {
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let pool: RollingPool;

  before(async () => {
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 8
      --breaker-first-pause-seconds 1`);
    client = daemon.client();
    pool = new RollingPool(client, 'default');
  });
  after(() => daemon.dispose());
  beforeEach(() => stocked(client, 8));

  const idleIds = async (): Promise<readonly string[]> =>
    ((await client.get('/sandboxes?phase=Idle&limit=100')).json.items ?? []).map(({ sandboxId }) =>
      String(sandboxId),
    );
  const brokenTemplate = {
    containers: [{ name: 'main', image: 'host', command: ['/nowhere/to/be/found'] }],
  };

  it('replaces idle sandboxes within maxUnavailable, hands out new ones first, and keeps running ones', async () => {
    const running = await claim(client);
    const before = await idleIds();
    const seen: number[] = [];
    await pool.edit({ overrides: { defaultIdleTimeout: '31m' } });
    const status = await pool.rolledOut(({ idleReplicas }) => {
      seen.push(idleReplicas);
    });
    expect(Math.min(...seen), 'of 7 that are unclaimed').to.be.at.least(6);
    expect(status).to.deep.include({ idleReplicas: 7, runningReplicas: 1, updatedReplicas: 7 });
    expect((await idleIds()).filter((id) => before.includes(id))).to.deep.equal([]);
    expect((await client.get(`/sandboxes/${running}`)).json.sandbox?.['status']).to.equal(
      'Running',
    );
    expect(
      (await client.post(`/sandboxes/${running}/exec`, { command: ['true'] })).status,
    ).to.equal(200);
    await client.delete(`/sandboxes/${running}`);
  });

  it('stops if the new revision cannot start, gives the reason, and continues after another edit', async () => {
    await pool.edit({ template: brokenTemplate });
    const stopped = await pool.until('it is stopped', ({ phase }) => phase === 'Degraded');
    expect(stopped.idleReplicas).to.be.at.least(6);
    const [progressing, degraded] = stopped.conditions;
    expect(progressing).to.deep.include({
      type: 'Progressing',
      status: 'False',
      reason: 'RolloutBlocked',
    });
    expect(degraded).to.deep.include({ type: 'Degraded', status: 'True', reason: 'StartsFail' });
    expect(degraded?.message).to.not.equal('');
    await client.delete(`/sandboxes/${await claim(client)}`);

    await pool.edit({ templateName: 'default', overrides: { defaultIdleTimeout: '32m' } });
    const { conditions } = await pool.rolledOut();
    expect(conditions.map(({ status }) => status)).to.deep.equal(['False', 'False', 'True']);
  });

  it('continues after a kill -9 of the daemon', async () => {
    const revision = await pool.edit({
      overrides: { defaultIdleTimeout: '33m' },
      updateStrategy: { maxUnavailable: '1' },
    });
    await daemon.kill();
    await daemon.start();
    client = daemon.client();
    pool = new RollingPool(client, 'default');
    expect(await pool.rolledOut()).to.deep.include({
      updateRevision: revision,
      idleReplicas: 8,
      updatedReplicas: 8,
    });
  });
});
