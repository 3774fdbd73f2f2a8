import { expect } from 'chai';
import { type DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import {
  aTenant,
  claim,
  clear,
  finished,
  poolStatus,
  stocked,
} from '../support/harness/on-a-daemon.ts';
import { onTheSharedDaemon } from '../support/harness/shared-daemon.ts';

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

  it('idle instances are listed with phase=Idle; owners can GET and DELETE them, and get replacements', async () => {
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

  it('starting instances are listed and can be deleted, and the pool still fills', async function () {
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

  it('only an admin can filter by namespace, team, user and all', async () => {
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

  it('simultaneous requests to one sandbox succeed, or report that it is ending or ended', async () => {
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
