import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { processProbe } from '../support/harness/process-probe.ts';
import {
  aTenant,
  aTemplateFolder,
  claim,
  finished,
  giveBack,
  run,
  stocked,
} from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

const spec = (command: string): object => ({
  description: 'prints',
  containers: [
    {
      name: 'main',
      image: 'host',
      command: ['sh', '-c', command],
      resources: { limits: { cpu: '500m', memory: '128Mi' } },
    },
  ],
  idleTimeout: '30m',
});

describe('logs and events of a real daemon', function () {
  const probe = processProbe();
  let templates: ReturnType<typeof aTemplateFolder>;
  let daemon: DaemonUnderTest;
  const readers: EventReader[] = [];

  const follow = async (
    path: string,
    headers: Readonly<Record<string, string>> = {},
    key = daemon.tenantKey,
  ): Promise<EventReader> => {
    const reader = await EventReader.open(daemon.run.port, path, {
      'SERVICE-API-KEY': key,
      ...headers,
    });
    readers.push(reader);
    return reader.read();
  };
  const logs = async (id: string, query = '', client = daemon.client()): Promise<string> =>
    (JSON.parse((await client.get(`/sandboxes/${id}/logs${query}`)).text) as { logs: string }).logs;
  const reasons = async (id: string): Promise<readonly string[]> =>
    ((await daemon.client().get(`/sandboxes/${id}/events`)).json.items ?? []).map((item) =>
      String(item['reason']),
    );

  before(async () => {
    templates = aTemplateFolder({
      counter: spec('n=0; while :; do n=$((n+1)); echo "count $n"; sleep 0.02; done'),
      flood: spec('yes "all work and no play"'),
      broken: spec('echo there is no such file >&2; exit 127'),
      short: spec('echo only words; while [ ! -e /tmp/over ]; do sleep 0.05; done; exit 3'),
    });
    daemon = await DaemonUnderTest.start(
      line`--templates-dir ${templates.folder} --default-pool-replicas 0 --history-retention 24h`,
      undefined,
      { env: probe.env },
    );
    for (const name of ['counter', 'flood', 'short'])
      await daemon.client().post('/sandboxpools', { name, templateName: name, replicas: 1 });
  });
  after(async () => {
    for (const reader of readers) reader.close();
    await daemon.dispose();
    templates.remove();
    probe.remove();
  });

  it('show the output of a sandbox to its owner only', async () => {
    const id = await claim(daemon.client(), 'counter');
    await within('it prints', async () => (await logs(id)).includes('count 3\n') || undefined);
    expect(await logs(id, '?tailLines=1')).to.match(/^count \d+\n$/);
    expect(await logs(id, '?tailLines=1&timestamps=true')).to.match(
      /^\d{4}-\d\d-\d\dT[\d:.]+Z count \d+\n$/,
    );
    const stranger = await aTenant(daemon, 'red', 'eve');
    expect((await stranger.get(`/sandboxes/${id}/logs`)).status).to.equal(404);
    expect((await stranger.get(`/sandboxes/${id}/events`)).status).to.equal(404);
    const { json } = await daemon
      .client(daemon.adminKey)
      .post('/admin/api-keys', { team: 'ops', user: 'root', role: 'admin' });
    const admin = daemon.client(json.apiKey);
    expect((await admin.get(`/sandboxes/${id}/logs`)).status).to.equal(404);
    expect((await admin.get(`/sandboxes/${id}/events`)).status).to.equal(200);
    await giveBack(daemon.client(), id);
  });

  it('follow a sandbox to its end, without a gap over a kill -9 of the daemon', async () => {
    await stocked(daemon.client(), 1, 'counter');
    const id = await claim(daemon.client(), 'counter');
    const first = await follow(`/sandboxes/${id}/logs?follow=true&tailLines=10000`);
    const seen = await first.until((events) => events.length > 20, 'twenty lines');
    await daemon.kill();
    await daemon.start();
    const again = await follow(`/sandboxes/${id}/logs?follow=true`, {
      'Last-Event-ID': seen.at(-1)?.id ?? '',
    });
    await again.until((events) => events.length > 20, 'twenty more');
    await daemon.client().delete(`/sandboxes/${id}`);
    const rest = await again.until((events) => events.at(-1)?.event === 'end', 'its end');

    const counts = [...seen, ...rest].flatMap(({ data }) =>
      typeof data['line'] === 'string' ? [Number(data['line'].split(' ')[1])] : [],
    );
    expect(counts).to.deep.equal(Array.from({ length: counts.length }, (_, n) => n + 1));
    await finished(daemon.client(), id);
    expect(await logs(id, '?tailLines=1')).to.match(/^count \d+\n$/);
  });

  it('keep the history of a finished sandbox over a restart', async () => {
    await stocked(daemon.client(), 1, 'short');
    const id = await claim(daemon.client(), 'short');
    await daemon.client().put(`/sandboxes/${id}/idle-timeout`, { idleTimeout: '1h' });
    await run(daemon.client(), id, 'touch /tmp/over');
    await finished(daemon.client(), id);
    const check = async (): Promise<void> => {
      expect(await logs(id)).to.equal('only words\n');
      const { json } = await daemon.client().get(`/sandboxes/${id}/events`);
      expect(json.items?.map((item) => item['reason'])).to.deep.equal([
        'Created',
        'Started',
        'Claimed',
        'IdleTimeoutChanged',
        'Completed',
      ]);
      expect(json.items?.at(-1)).to.include({
        type: 'Warning',
        endReason: 'exited',
        exitCode: 3,
        message: 'it has ended: its main process ended with exit code 3',
      });
      expect(json.total).to.equal(5);
    };
    await check();
    await daemon.stop();
    await daemon.start();
    await check();
  });

  it('keep the history of a pool and its failed starts, over a restart and its deletion', async () => {
    const client = daemon.client();
    const made = await client.post('/sandboxpools', {
      name: 'broken',
      templateName: 'broken',
      replicas: 1,
    });
    expect(made.status, made.text).to.equal(201);
    const printed = async () => (await daemon.cli(['events', 'pool', 'broken'])).stdout;
    await within('it pauses', async () => (await printed()).includes('BackOff') || undefined);
    const told = await printed();
    expect(told.split('\n')[0]).to.match(/^TIME +TYPE +REASON +MESSAGE$/);
    expect(told).to.match(/Normal +Created +pool broken was created\n/);
    expect(told).to.match(/Warning +StartFailed +an instance of pool broken did not start: .+\n/);
    expect(told).to.match(/Warning +BackOff +pool broken starts no instances until .+: .+\n/);

    await daemon.stop();
    await daemon.start();
    expect((await printed()).slice(0, told.length)).to.equal(told);
    await daemon.client().delete('/sandboxpools/broken?force=true');
    await within('it is gone', async () => (await printed()).includes('Deleted') || undefined);
    expect((await printed()).match(/Created/g)).to.have.length(1);
    const stranger = await aTenant(daemon, 'red', 'eve');
    expect((await stranger.get('/sandboxpools/broken/events')).status).to.equal(404);
    const env = await daemon.cli(['events', 'env', 'shells']);
    expect([env.code, env.stderr]).to.satisfy(
      ([code, text]: [number, string]) =>
        code === 1 && text.includes('sandpool envs explain shells'),
    );
  });

  it('show events as they happen', async () => {
    await stocked(daemon.client(), 1, 'counter');
    const reader = await follow('/events');
    const id = await claim(daemon.client(), 'counter');
    await giveBack(daemon.client(), id);
    const events = await reader.until(
      (all) =>
        all.some(({ data }) => data['sandboxId'] === id && data['reason'] === 'Completed') &&
        all.some(({ data }) => data['reason'] === 'Created' && data['poolName'] === 'counter'),
      'its end, and the one in its place',
    );

    const own = events
      .filter(({ data }) => data['sandboxId'] === id)
      .map(({ data }) => data['reason']);
    expect(own).to.deep.equal(['Claimed', 'Killing', 'Completed']);
    expect(await reasons(id)).to.deep.equal([
      'Created',
      'Started',
      'Claimed',
      'Killing',
      'Completed',
    ]);
    const again = await follow('/events', { 'Last-Event-ID': events[0]?.id ?? '' });
    expect(
      await again.until((all) => all.length >= events.length - 1, 'what came after'),
    ).to.deep.include.members(events.slice(1));
  });

  it('buffer nothing for followers that do not read, and do not wait for them', async () => {
    await stocked(daemon.client(), 1, 'flood');
    const id = await claim(daemon.client(), 'flood');
    for (let n = 0; n < 8; n += 1)
      readers.push(
        await EventReader.open(daemon.run.port, `/sandboxes/${id}/logs?follow=true`, {
          'SERVICE-API-KEY': daemon.tenantKey,
        }),
      );
    const pid = daemon.run.process.pid ?? 0;
    const before = (await probe.of(pid)).heldBytes;
    const reader = await follow(`/sandboxes/${id}/logs?follow=true`);
    await reader.until((events) => events.length > 20_000, 'one who reads gets on');
    expect((await probe.of(pid)).heldBytes - before).to.be.below(16 << 20);
    expect((await daemon.client().get('/healthz')).status).to.equal(200);
    await giveBack(daemon.client(), id);
  });
});
