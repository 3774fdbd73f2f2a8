import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/a-daemon.ts';
import { eventually } from '../support/eventually.ts';
import { seriesOf, type Exposition } from '../support/exposition.ts';
import { connectRaw, type HttpClient } from '../support/http-client.ts';
import { spawnerPid } from '../support/kill-rounds.ts';
import { aTemplateFolder, claim, clear, stocked } from '../support/on-a-daemon.ts';

/** Whatever is provoked here shows in what an alert looks at, and goes again. How long it must last is for promtool. */
describe('what alerts look at, on a real daemon', function () {
  this.timeout(90_000);
  let templates: ReturnType<typeof aTemplateFolder>;
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let admin: HttpClient;

  const told = async (): Promise<Exposition> => seriesOf(await daemon.metrics());
  const value = async (name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> => (await told()).value(name, labels) ?? 0;
  const broken = async (): Promise<number> => await value('sandpool_pools', { phase: 'Degraded' }) + await value('sandpool_pools', { phase: 'Failed' });
  /** Of the claims that `during` makes, the part that ended so. */
  const partOf = async (result: string, during: () => Promise<unknown>): Promise<number> => {
    const [ended, all] = [await value('sandpool_claims_total', { result }), await value('sandpool_claims_total')];
    await during();
    return (await value('sandpool_claims_total', { result }) - ended) / (await value('sandpool_claims_total') - all);
  };

  before(async () => {
    templates = aTemplateFolder({ broken: { description: 'ends at once', containers: [{ name: 'main', image: 'host', command: ['/no/such/program'] }] } });
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '2', '--templates-dir', templates.folder, '--breaker-failures', '1']);
    client = daemon.client();
    admin = daemon.client(daemon.adminKey);
    await stocked(client, 2);
  });

  after(async () => {
    await daemon.dispose();
    templates.remove();
  });

  it('SandpoolPoolsCannotStart and SandpoolStartsFail: a pool whose command is not there, and then is', async () => {
    const failures = await value('sandpool_start_failures_total');
    expect(await broken()).to.equal(0);

    expect((await client.post('/sandboxpools', { name: 'drill', templateName: 'broken', replicas: 1 })).status).to.equal(201);
    await within(30_000, 'it shows', async () => (await broken()) > 0 || undefined);
    expect(await value('sandpool_start_failures_total')).to.be.above(failures);

    expect((await client.put('/sandboxpools/drill', { templateName: 'default' })).status).to.equal(200);
    await within(30_000, 'it goes', async () => (await broken()) === 0 || undefined);
    await client.delete('/sandboxpools/drill?force=true');
  });

  it('SandpoolClaimsFindNone: more claims than instances, and then fewer', async () => {
    await client.post('/sandboxpools', { name: 'empty', templateName: 'default', replicas: 0 });

    expect(await partOf('exhausted', () => client.post('/sandboxes', { poolName: 'empty' }))).to.equal(1);
    await client.put('/sandboxpools/empty', { replicas: 1 });
    await stocked(client, 1, 'empty');
    expect(await partOf('exhausted', () => claim(client, 'empty'))).to.equal(0);
    await clear(client);
  });

  it('SandpoolQuotasReached: a quota of none, and then of enough', async () => {
    await stocked(client, 2);
    await admin.put('/admin/quotas/default/default', { sandboxes: 0 });
    expect(await partOf('quota', () => client.post('/sandboxes', { poolName: 'default' }))).to.equal(1);

    await admin.put('/admin/quotas/default/default', { sandboxes: 100 });
    expect(await partOf('quota', () => claim(client))).to.equal(0);
    await clear(client);
  });

  it('SandpoolLoopLate: a daemon that is stopped for half a second, and goes on', async () => {
    const lag = (): Promise<number> => value('nodejs_eventloop_lag_p99_seconds');
    const { pid } = daemon.run.process;
    if (pid === undefined) throw new Error('the daemon has no pid');

    await eventually(async () => {
      await lag(); // what was before is not counted
      process.kill(pid, 'SIGSTOP');
      const stopped = performance.now();
      await eventually(() => performance.now() - stopped > 500, 'half a second is over');
      process.kill(pid, 'SIGCONT');
      return (await lag()) > 0.25;
    }, 'it shows', 30_000);
    await eventually(async () => (await lag()) < 0.25, 'it goes', 60_000);
  });

  it('SandpoolOutboxStuck: launches that nobody carries out, and then somebody does', async () => {
    const oldest = (): Promise<number> => value('sandpool_outbox_oldest_seconds', { host: 'supervisor' });
    const pid = await within(10_000, 'a spawner', () => spawnerPid(daemon.dataDir));
    await stocked(client, 2);

    process.kill(pid, 'SIGSTOP');
    try {
      await client.put('/sandboxpools/default', { replicas: 4 });
      await within(30_000, 'it shows', async () => (await oldest()) > 0.5 || undefined);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await within(60_000, 'it goes', async () => (await value('sandpool_outbox_intents', { host: 'supervisor' })) === 0 || undefined);
    await stocked(client, 4);
  });

  it('SandpoolTurnsAway: a client that sends on and on, and then no more', async () => {
    const turnedAway = await value('sandpool_http_turned_away_total');
    const connection = await connectRaw(daemon.run.port);
    connection.socket.write('GET /sandboxpools/default HTTP/1.1\r\nHost: drill\r\n\r\n'.repeat(2_000));

    await within(30_000, 'it shows', async () => (await value('sandpool_http_turned_away_total')) > turnedAway || undefined);
    await connection.closed(30_000);
    const afterwards = await value('sandpool_http_turned_away_total');
    expect((await client.get('/sandboxpools/default')).status).to.equal(200);
    expect(await value('sandpool_http_turned_away_total')).to.equal(afterwards);
  });

  it('SandpoolDown: a daemon that is killed, and started again', async () => {
    expect(await value('sandpool_build_info')).to.equal(1);

    await daemon.kill();
    expect(await daemon.metrics().then(() => 'it answers', () => 'nothing')).to.equal('nothing');

    await daemon.start();
    expect(await value('sandpool_build_info')).to.equal(1);
    expect(await value('sandpool_ready')).to.equal(1);
    expect(await value('sandpool_shards_led')).to.equal(16);
  });
});
