import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';
import { connectRaw, type HttpClient } from '../support/harness/http-client.ts';
import { aTemplateFolder, claim, clear, stocked } from '../support/harness/on-a-daemon.ts';
import { AlertWatch } from '../support/harness/prometheus/alert-watch.ts';
import { stoppedFor } from '../support/harness/stopped-for.ts';
import { line } from '../support/harness/line.ts';

/**
 * What is provoked here makes the rule's own expression hold, and hold no longer. For how long it
 * must is for promtool.
 */
describe('alerts on a real daemon', function () {
  let templates: ReturnType<typeof aTemplateFolder>;
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let admin: HttpClient;
  let watch: AlertWatch;

  before(async () => {
    templates = aTemplateFolder({
      broken: {
        description: 'ends at once',
        containers: [{ name: 'main', image: 'host', command: ['/no/such/program'] }],
      },
    });
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 2
      --templates-dir ${templates.folder} --breaker-failures 1 --log-level error`);
    client = daemon.client();
    admin = daemon.client(daemon.adminKey);
    await stocked(client, 2);
    watch = new AlertWatch({ a: () => daemon.metrics() });
  });

  beforeEach(() => watch.anHourLater());

  after(async () => {
    await daemon.dispose();
    templates.remove();
  });

  it('SandpoolPoolsCannotStart: fires for a pool with a missing command, and clears once it exists', async () => {
    expect(await watch.look('SandpoolPoolsCannotStart')).to.equal(false);

    expect(
      (await client.post('/sandboxpools', { name: 'drill', templateName: 'broken', replicas: 1 }))
        .status,
    ).to.equal(201);
    await watch.fires('SandpoolPoolsCannotStart');

    expect((await client.put('/sandboxpools/drill', { templateName: 'default' })).status).to.equal(
      200,
    );
    await watch.clears('SandpoolPoolsCannotStart');
    await client.delete('/sandboxpools/drill?force=true');
  });

  it('SandpoolStartsFail: fires for failing starts, and clears after good ones', async () => {
    expect(await watch.look('SandpoolStartsFail')).to.equal(false);

    await client.post('/sandboxpools', {
      name: 'drill-starts',
      templateName: 'broken',
      replicas: 1,
    });
    await watch.fires('SandpoolStartsFail');

    expect(
      (await client.put('/sandboxpools/drill-starts', { templateName: 'default' })).status,
    ).to.equal(200);
    await stocked(client, 1, 'drill-starts');
    await watch.anHourLater();
    await client.put('/sandboxpools/drill-starts', { replicas: 6 });
    await stocked(client, 6, 'drill-starts');
    await watch.clears('SandpoolStartsFail');
    await client.delete('/sandboxpools/drill-starts?force=true');
  });

  it('SandpoolClaimsFindNone: fires for more claims than instances, and clears', async () => {
    await client.post('/sandboxpools', { name: 'empty', templateName: 'default', replicas: 0 });
    expect(await watch.look('SandpoolClaimsFindNone')).to.equal(false);

    expect((await client.post('/sandboxes', { poolName: 'empty' })).status).to.equal(429);
    await watch.fires('SandpoolClaimsFindNone');

    await client.put('/sandboxpools/empty', { replicas: 1 });
    await stocked(client, 1, 'empty');
    await watch.anHourLater();
    await claim(client, 'empty');
    await watch.clears('SandpoolClaimsFindNone');
    await clear(client);
  });

  it('SandpoolQuotasReached: fires for an empty quota, and clears with a larger one', async () => {
    await stocked(client, 2);
    expect(await watch.look('SandpoolQuotasReached')).to.equal(false);

    await admin.put('/admin/quotas/default/default', { sandboxes: 0 });
    try {
      expect((await client.post('/sandboxes', { poolName: 'default' })).status).to.equal(429);
      await watch.fires('SandpoolQuotasReached');
    } finally {
      await admin.put('/admin/quotas/default/default', { sandboxes: 100 });
    }

    await watch.anHourLater();
    await claim(client);
    await watch.clears('SandpoolQuotasReached');
    await clear(client);
  });

  it('SandpoolLoopLate: fires for a daemon that was stopped for half a second, and clears', async () => {
    await eventually(async () => {
      await watch.look('SandpoolLoopLate'); // what was before is not counted
      await stoppedFor(500, daemon.run.process);
      return await watch.look('SandpoolLoopLate');
    }, 'SandpoolLoopLate fires');

    await watch.clears('SandpoolLoopLate');
  });

  it('SandpoolDeadlinesLate: fires for a daemon that was stopped past deadlines, and clears', async () => {
    /** Claims one that ends after so long without use. */
    const short = async (idleTimeoutSeconds: number): Promise<string> => {
      const id = await claim(client);
      expect(
        (await client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeoutSeconds })).status,
      ).to.equal(200);
      return id;
    };
    const ended = (id: string): Promise<unknown> =>
      within(
        `${id} ends`,
        async () => (await client.get(`/sandboxes/${id}`)).status === 404 || undefined,
      );
    expect(await watch.look('SandpoolDeadlinesLate')).to.equal(false);

    await eventually(async () => {
      await watch.anHourLater();
      const id = await short(3);
      await stoppedFor(6_000, daemon.run.process);
      await ended(id);
      return await watch.look('SandpoolDeadlinesLate');
    }, 'SandpoolDeadlinesLate fires');

    await eventually(async () => {
      await watch.anHourLater();
      await ended(await short(1));
      return !(await watch.look('SandpoolDeadlinesLate'));
    }, 'SandpoolDeadlinesLate clears');
  });

  it('SandpoolTurnsAway: fires while clients flood the daemon, and clears', async () => {
    /** More than a connection may have waiting: one is turned away, and the connection ends. */
    const sendOn = async (): Promise<void> => {
      const connection = await connectRaw(daemon.run.port);
      connection.socket.write(
        'GET /sandboxpools/default HTTP/1.1\r\nHost: drill\r\n\r\n'.repeat(100),
      );
      await connection.closed(30_000);
    };
    expect(await watch.look('SandpoolTurnsAway')).to.equal(false);

    await eventually(async () => {
      await Promise.all(Array.from({ length: 50 }, sendOn));
      return await watch.look('SandpoolTurnsAway');
    }, 'SandpoolTurnsAway fires');

    await watch.anHourLater();
    expect((await client.get('/sandboxpools/default')).status).to.equal(200);
    await watch.clears('SandpoolTurnsAway');
  });

  it('SandpoolDown: fires for a killed daemon, and clears after its restart', async () => {
    expect(await watch.look('SandpoolDown')).to.equal(false);

    await daemon.kill();
    await watch.fires('SandpoolDown');

    await daemon.start();
    await watch.clears('SandpoolDown');
    expect(await watch.look('SandpoolNotReady')).to.equal(false);
  });
});
