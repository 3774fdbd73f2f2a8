import { expect } from 'chai';
import { type DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import {
  aTenant,
  bodyOf,
  claim,
  clear,
  finished,
  giveBack,
  poolStatus,
  stocked,
} from '../support/harness/on-a-daemon.ts';
import { onTheSharedDaemon } from '../support/harness/shared-daemon.ts';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const NOT_FOUND = {
  error: 'sandbox not found or already terminated',
  errorCode: 'SANDBOX_NOT_FOUND',
};

type Item = Readonly<Record<string, unknown>>;

describe('the contract: sandboxes', () => {
  const shared = onTheSharedDaemon();
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let admin: HttpClient;

  before(async function () {
    daemon = shared();
    client = daemon.client();
    await client.put('/sandboxpools/default', { replicas: 6 });
    const {
      json: { apiKey = '' },
    } = await daemon
      .client(daemon.adminKey)
      .post('/admin/api-keys', { team: 'ops', user: 'olga', role: 'admin' });
    admin = daemon.client(apiKey);
  });

  beforeEach(async () => {
    await clear(client);
    await stocked(client, 6);
  });

  const list = async (
    query = '',
    as = client,
  ): Promise<{
    readonly items: readonly Item[];
    readonly total: number;
    readonly limit: number;
    readonly offset: number;
  }> => {
    const answer = await as.get(`/sandboxes${query}`);
    expect(answer.status, answer.text).to.equal(200);
    return JSON.parse(answer.text);
  };

  const all = async (query: string, as = client): Promise<readonly string[]> =>
    (await list(query, as)).items.map((item) => String(item['sandboxId']));

  it('POST without an idle instance is 429 with the counts, a hint and Retry-After', async () => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => claim(client)));
    expect(new Set(ids).size).to.equal(6);
    const answer = await client.post('/sandboxes', { poolName: 'default' });
    expect(answer.status).to.equal(429);
    expect(answer.headers['retry-after']).to.match(/^[1-9]\d*$/);
    const { error, errorCode, detail } = answer.json;
    expect({ error, errorCode }).to.deep.equal({
      error: 'no idle pods available in pool',
      errorCode: 'POOL_EXHAUSTED',
    });
    const { hint, ...counts } = detail ?? {};
    expect(counts).to.deep.equal({ idle: 0, running: 6, starting: 0, stopping: 0, failed: 0 });
    expect(hint).to.be.a('string').that.is.not.empty;
  });

  it('DELETE answers the bare record as Stopping, may be repeated, and ends in a finished record', async () => {
    const id = await claim(client);
    const answer = await client.delete(`/sandboxes/${id}`);
    expect(answer.status).to.equal(200);
    expect(bodyOf(answer)).to.deep.equal({
      sandboxId: id,
      namespace: 'default',
      poolName: 'default',
      podName: `sb-${id}`,
      status: 'Stopping',
    });
    expect((await client.delete(`/sandboxes/${id}`)).status).to.be.oneOf([200, 404]);
    expect(await finished(client, id)).to.include({ status: 'Completed', endReason: 'deleted' });
    // History shows it a moment before its quota and its record are given up.
    const gone = await within('it is gone', async () => {
      const again = await client.delete(`/sandboxes/${id}`);
      return again.status === 200 ? undefined : again;
    });
    expect(bodyOf(gone)).to.deep.equal(NOT_FOUND);
  });

  it('of two deletes at once none fails', async () => {
    const id = await claim(client);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => client.delete(`/sandboxes/${id}`)),
    );
    for (const answer of answers) expect(answer.status, answer.text).to.be.oneOf([200, 404]);
    expect(answers.some(({ status }) => status === 200)).to.equal(true);
  });

  it("a list record of a running sandbox has the contract's fields, and none that is null", async () => {
    const asked = performance.now();
    const id = await claim(client);
    const { items } = await list();
    const record = items.find((item) => item['sandboxId'] === id) ?? {};
    const { claimedAt, startedAt, durationSeconds, ...others } = record;
    expect(durationSeconds)
      .to.be.a('number')
      .within(0, (performance.now() - asked) / 1_000);
    expect(claimedAt).to.match(TIMESTAMP);
    expect(startedAt).to.match(TIMESTAMP);
    expect(Date.parse(String(startedAt))).to.be.at.most(Date.parse(String(claimedAt)));
    expect(others).to.deep.equal({
      sandboxId: id,
      namespace: 'default',
      poolName: 'default',
      podName: `sb-${id}`,
      status: 'Running',
      team: 'default',
      user: 'default',
      cpu: '1',
      memory: '256Mi',
      containerImages: { main: 'host' },
    });
    await giveBack(client, id);
    const end = await finished(client, id);
    for (const field of ['claimedAt', 'startedAt', 'terminatedAt', 'recycledAt'])
      expect(end[field], field).to.match(TIMESTAMP);
    const [claimed = 0, terminated = 0, recycled] = ['claimedAt', 'terminatedAt', 'recycledAt'].map(
      (field) => Date.parse(String(end[field])),
    );
    expect(terminated).to.be.at.least(claimed);
    expect(recycled).to.be.at.least(terminated);
    expect(end).to.include({
      status: 'Completed',
      endReason: 'deleted',
      cpu: '1',
      memory: '256Mi',
      durationSeconds: Math.floor((terminated - claimed) / 1_000),
    });
  });

  it('the list without a phase shows claimed and finished ones, newest claim first, not the stock', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.unshift(await claim(client));
    await giveBack(client, ids[1] ?? '');
    const { items, total } = await list('?limit=1000');
    expect(items).to.have.length(total);
    expect(items.slice(0, 4).map((item) => item['sandboxId'])).to.deep.equal(ids);
    expect(items.slice(0, 4).map((item) => item['status'])).to.deep.equal([
      'Running',
      'Completed',
      'Running',
      'Running',
    ]);
    expect(items.filter((item) => item['status'] === 'Idle')).to.deep.equal([]);
    const times = items.map((item) => Date.parse(String(item['claimedAt'])));
    expect(times).to.deep.equal([...times].sort((a, b) => b - a));
  });

  it('pages hold what limit and offset say, with exact totals, without gap or repetition', async () => {
    await Promise.all([claim(client), claim(client), claim(client)]);
    const whole = await all('?limit=1000');
    const { total, limit, offset } = await list();
    expect({ total, limit, offset }).to.deep.equal({ total: whole.length, limit: 20, offset: 0 });
    const pieced: string[] = [];
    for (let at = 0; at < whole.length; at += 2) {
      const page = await list(`?limit=2&offset=${at}`);
      expect(page).to.include({ total: whole.length, limit: 2, offset: at });
      pieced.push(...page.items.map((item) => String(item['sandboxId'])));
    }
    expect(pieced).to.deep.equal(whole);
    expect(await list(`?offset=${whole.length}`)).to.deep.equal({
      items: [],
      total: whole.length,
      limit: 20,
      offset: whole.length,
    });
    expect(await list('?offset=999999999&limit=1000')).to.deep.equal({
      items: [],
      total: whole.length,
      limit: 1000,
      offset: 999_999_999,
    });
  });

  it('phase and poolName filter, alone and together', async () => {
    await client.post('/sandboxpools', { name: 'second', templateName: 'default', replicas: 2 });
    await stocked(client, 2, 'second');
    const [first, second] = [await claim(client), await claim(client, 'second')];
    expect(await all('?phase=Running')).to.deep.equal([second, first]);
    expect(await all('?phase=Running&poolName=second')).to.deep.equal([second]);
    expect(await all('?poolName=second')).to.deep.equal([second]);
    expect(await all('?poolName=nowhere')).to.deep.equal([]);
    const idle = await list('?phase=Idle&poolName=second');
    expect(idle.total).to.equal(1);
    expect(idle.items[0]).to.include({ status: 'Idle', poolName: 'second', cpu: '1' });
    expect(await all('?phase=Stopping')).to.deep.equal([]);
    expect(await all('?phase=Failed')).to.deep.equal([]);
    await client.delete('/sandboxpools/second');
  });

  it('idle instances are listed with phase=Idle; their owner may GET and DELETE them, and gets another', async () => {
    const { items, total } = await list('?phase=Idle');
    expect(total).to.equal(6);
    const item = items[0] ?? {};
    const id = String(item['sandboxId']);
    expect(item).to.include({
      status: 'Idle',
      poolName: 'default',
      podName: `sb-${id}`,
      namespace: 'default',
    });
    expect(item).to.not.have.any.keys('claimedAt', 'terminatedAt', 'endReason', 'durationSeconds');
    expect((await client.get(`/sandboxes/${id}`)).json.sandbox).to.include({
      sandboxId: id,
      status: 'Idle',
    });
    const other = await aTenant(daemon, 'default', 'frank');
    expect((await other.get(`/sandboxes/${id}`)).status).to.equal(404);
    expect((await other.delete(`/sandboxes/${id}`)).status).to.equal(404);
    expect(await all('?phase=Idle', other)).to.deep.equal([]);

    expect((await client.delete(`/sandboxes/${id}`)).json.status).to.equal('Stopping');
    await stocked(client, 6);
    expect(await all('?phase=Idle')).to.not.include(id);
    expect(await all('?limit=1000'), 'what nobody claimed leaves no history').to.not.include(id);
  });

  it('instances that are starting are listed, and may be deleted; the pool fills all the same', async function () {
    const seen = new Set<string>();
    await client.post('/sandboxpools', { name: 'big', templateName: 'default', replicas: 40 });
    await within('all were started', async () => {
      for (const item of (await list('?phase=Starting&poolName=big&limit=5')).items) {
        expect(item).to.include({ status: 'Starting' });
        const id = String(item['sandboxId']);
        if (seen.size >= 5 || seen.has(id)) continue;
        seen.add(id);
        expect((await client.delete(`/sandboxes/${id}`)).status).to.be.oneOf([200, 404]);
      }
      return (await poolStatus(client, 'big'))['idleReplicas'] === 40 || undefined;
    });
    expect(seen.size).to.be.greaterThan(0);
    expect(
      (await all('?phase=Idle&poolName=big&limit=1000')).filter((id) => seen.has(id)),
    ).to.deep.equal([]);
    await client.delete('/sandboxpools/big');
    await within(
      'it is gone',
      async () => (await client.get('/sandboxpools/big')).status === 404 || undefined,
    );
  });

  it('only an admin may filter by namespace, team, user and all; each filter scopes', async () => {
    const erin = await aTenant(daemon, 'elsewhere', 'erin');
    await erin.post('/sandboxpools', { name: 'erins', templateName: 'default', replicas: 1 });
    const [mine, hers] = [await claim(client), await claim(erin, 'erins')];
    for (const query of ['all=true', 'team=default', 'user=default', 'namespace=default']) {
      const answer = await client.get(`/sandboxes?${query}`);
      expect(answer.status, query).to.equal(403);
      expect(answer.json.errorCode, query).to.equal('ADMIN_REQUIRED');
    }
    expect(
      await all('?phase=Running', admin),
      'an admin without a filter sees its own',
    ).to.deep.equal([]);
    expect(await all('?phase=Running&all=true', admin)).to.deep.equal([hers, mine]);
    expect(await all('?phase=Running&team=elsewhere', admin)).to.deep.equal([hers]);
    expect(await all('?phase=Running&user=default', admin)).to.deep.equal([mine]);
    expect(await all('?phase=Running&namespace=elsewhere&user=default', admin)).to.deep.equal([]);
    expect(await all('?phase=Running', erin)).to.deep.equal([hers]);

    expect(
      (await admin.get(`/sandboxes/${hers}`)).json.sandbox,
      'an admin may look at any',
    ).to.include({ sandboxId: hers, team: 'elsewhere' });
    expect(
      (await admin.post(`/sandboxes/${hers}/exec`, { command: 'id' })).status,
      'but runs nothing in it',
    ).to.equal(404);
    expect((await admin.delete(`/sandboxes/${hers}`)).json.status).to.equal('Stopping');
    await erin.delete('/sandboxpools/erins');
  });

  it('whatever comes at once to one sandbox is carried out, or told that it ends or ended', async () => {
    const id = await claim(client);
    const asks = [
      () => client.get(`/sandboxes/${id}`),
      () => client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeout: '5m' }),
      () => client.post(`/sandboxes/${id}/exec`, { command: 'true' }),
      () => client.post(`/sandboxes/${id}/exec-token`),
      () => client.delete(`/sandboxes/${id}`),
    ] as const;
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => asks.map((ask) => ask())).flat(),
    );
    for (const answer of answers) expect(answer.status, answer.text).to.be.oneOf([200, 404, 409]);
    expect(await finished(client, id)).to.include({ endReason: 'deleted' });
  });
});
