import { expect } from 'chai';
import { expireApproval } from '../../src/services/approvals/approval-writer.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import {
  aSession,
  anApprovingServer,
  approvalIdOf,
  type ApprovingServer,
} from './an-approving-server.ts';

const A_POOL = { name: 'web', templateName: 'default', replicas: 2 };
const APPROVE = { decision: 'approve' };
const RULE = 'require method=POST|PUT|PATCH|DELETE';

describe('attacks on approvals', () => {
  let under: ApprovingServer;
  let id: string;
  const ask = (path = '/sandboxpools', headers = {}): Promise<HttpAnswer> =>
    under.server.tenant.post(path, A_POOL, { headers });
  const statusOf = (): string | undefined => under.records.records.get(id)?.status;
  const expectHeld = ({ status, json }: HttpAnswer, what = ''): void => {
    expect([status, json.errorCode], what).to.deep.equal([403, 'APPROVAL_REQUIRED']);
    expect(under.operations.pools.size, what).to.equal(0);
  };

  beforeEach(async () => {
    under = await anApprovingServer([RULE]);
    id = approvalIdOf(await ask());
  });
  afterEach(() => under.stop());

  describe('by who decides', () => {
    it('no key does: its own, a colleague’s, an admin’s, a stranger’s', async () => {
      const { tenant, colleague, admin, stranger } = under.server;
      for (const client of [tenant, colleague, admin, stranger]) {
        const { status, json } = await client.post(`/approvals/${id}/decision`, APPROVE);
        expect([status, json.errorCode]).to.deep.equal([403, 'CONSOLE_SESSION_REQUIRED']);
      }
      expect(statusOf()).to.equal('pending');
    });

    it('nobody does who shows nothing, or a key that nobody knows', async () => {
      const { anyone } = under.server;
      for (const [key, code] of [
        [undefined, 'API_KEY_REQUIRED'],
        ['nonsense', 'INVALID_API_KEY'],
      ] as const) {
        const { status, json, headers } = await anyone.post(`/approvals/${id}/decision`, APPROVE, {
          key,
        });
        expect([status, json.errorCode]).to.deep.equal([401, code]);
        expect(headers).to.include.keys('www-authenticate');
      }
      expect(statusOf()).to.equal('pending');
    });

    it('no key in a cookie does, nor in a query', async () => {
      const { anyone, admin } = under.server;
      const at = `/approvals/${id}/decision`;
      const sent = async (path: string, cookie?: string): Promise<unknown> => {
        const { status, json } = await anyone.post(path, APPROVE, {
          headers: cookie === undefined ? {} : { Cookie: cookie },
        });
        return [status, json.errorCode];
      };
      const noCredential = [401, 'API_KEY_REQUIRED'];
      expect(await sent(at, `SERVICE-API-KEY=${admin.key}`)).to.deep.equal(noCredential);
      expect(await sent(`${at}?SERVICE-API-KEY=${admin.key}`)).to.deep.equal(noCredential);
      expect(await sent(at, `__Host-sandpool-session=${admin.key}`)).to.deep.equal([
        403,
        'CONSOLE_SESSION_REQUIRED',
      ]);
      expect(statusOf()).to.equal('pending');
    });

    it('no cookie of a session does with a key beside it', async () => {
      const { status } = await under.server.admin.post(`/approvals/${id}/decision`, APPROVE, {
        headers: { Cookie: '__Host-sandpool-session=olga' },
      });

      expect([status, statusOf()]).to.deep.equal([400, 'pending']);
    });

    it('no viewer does, nobody without an identity, nobody whose login is old', async () => {
      under.sessions.set('vera', aSession({ operator: 'vera', role: 'viewer' }));
      under.sessions.set('none', aSession({ operator: '' }));
      under.sessions.set('old', aSession({ authenticatedAt: under.clock.now() - 15 * 60_000 - 1 }));
      for (const session of ['vera', 'none', 'old'])
        expect((await under.decide(id, APPROVE, session)).status, session).to.equal(403);
      expect(statusOf()).to.equal('pending');
    });

    it('nobody does who asked, by the same name, another name of theirs, or a key that theirs made', async () => {
      under.sessions.set('ada', aSession({ operator: 'Ada' }));
      under.sessions.set('alias', aSession({ operator: 'https://id/x', users: ['ada'] }));
      under.sessions.set('root', aSession({ operator: 'root' }));
      for (const session of ['ada', 'alias'])
        expect((await under.decide(id, APPROVE, session)).status, session).to.equal(403);

      const made = await under.approve(
        approvalIdOf(
          await under.server.admin.post('/admin/api-keys', { team: 'blue', user: 'bot' }),
        ),
      );
      const { apiKey = '' } = (
        await under.server.admin.post('/admin/api-keys', { team: 'blue', user: 'bot' })
      ).json;
      expect(made.status).to.equal(200);
      const asked = approvalIdOf(
        await under.server.anyone.post('/sandboxpools', A_POOL, { key: apiKey }),
      );
      expect((await under.decide(asked, APPROVE, 'root')).status).to.equal(403);
      expect((await under.decide(asked, APPROVE)).status).to.equal(200);
    });

    it('the only operator may, also of what they asked for', async () => {
      const alone = await anApprovingServer([RULE], { severalDecide: () => false });
      alone.sessions.set('ada', aSession({ operator: 'ada' }));
      const own = approvalIdOf(await alone.server.tenant.post('/sandboxpools', A_POOL));

      expect((await alone.decide(own, APPROVE, 'ada')).status).to.equal(200);
      await alone.stop();
    });
  });

  describe('by how it is decided', () => {
    it('not by another method, an override of it, an unknown word, or no JSON', async () => {
      const headers = { Cookie: '__Host-sandpool-session=olga' };
      const { anyone } = under.server;
      const at = `/approvals/${id}/decision`;
      expect((await anyone.get(`${at}?decision=approve`, { headers })).status).to.equal(405);
      for (const override of ['X-HTTP-Method-Override', 'X-Method-Override'])
        await anyone.get(`/approvals/${id}`, { headers: { ...headers, [override]: 'POST' } });
      for (const body of [
        {},
        { decision: 'yes' },
        { decision: 'APPROVE' },
        { decision: ['approve'] },
      ])
        expect((await anyone.post(at, body, { headers })).status).to.equal(400);
      expect(
        (
          await anyone.post(at, undefined, {
            raw: 'decision=approve',
            headers: { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' },
          })
        ).status,
      ).to.equal(415);
      expect(statusOf()).to.equal('pending');
    });

    it('once: a second decision is told that it came too late', async () => {
      await under.decide(id, { decision: 'deny' });

      const { status, json } = await under.approve(id);

      expect([status, json.errorCode, json.detail]).to.deep.equal([
        409,
        'ALREADY_DECIDED',
        { status: 'denied' },
      ]);
    });

    it('once, where two replicas decide at the same time', async () => {
      const { records, operations, clock } = under;
      const other = await anApprovingServer([RULE], { records, operations, clock });

      const answers = await Promise.all([
        under.decide(id, APPROVE),
        other.decide(id, { decision: 'deny' }),
      ]);

      expect(answers.map(({ status }) => status)).to.have.members([200, 409]);
      await other.stop();
    });

    it('not for a session where it is once only, or where there is no session', async () => {
      const headers = { 'X-Session-Id': 'run' };
      const admins = approvalIdOf(
        await under.server.admin.post('/admin/api-keys', { team: 'a', user: 'b' }, { headers }),
      );
      for (const each of [id, admins])
        expect((await under.approve(each, 'session')).json.detail?.['field']).to.equal('scope');
      expect(under.records.records.get(admins)?.status).to.equal('pending');
    });

    it('not by guessed ids, which say the same as another’s', async () => {
      const guessed = '01a21a8e-a887-7738-8b09-9f212a599a4d';
      const foreign = await under.server.stranger.get(`/approvals/${id}`);
      const unknown = await under.server.stranger.get(`/approvals/${guessed}`);

      expect(foreign.status).to.equal(404);
      expect(foreign.text).to.equal(unknown.text);
      expect((await under.approve(guessed)).status).to.equal(404);
      expect((await under.approve('../approvals')).status).to.equal(404);
      expect((await under.server.stranger.get('/approvals')).json.total).to.equal(0);
      expect((await under.server.admin.get('/approvals')).json.total).to.equal(1);
    });
  });

  describe('by another request than the one that was approved', () => {
    beforeEach(() => under.approve(id));

    it('another body, query, header, key or path does not pass', async () => {
      const { tenant, colleague } = under.server;
      const body = JSON.stringify(A_POOL);
      const post = (raw: string): Promise<HttpAnswer> =>
        tenant.post('/sandboxpools', undefined, { raw });
      expectHeld(await post(body.replace('2', '3')), 'body');
      expectHeld(await post(`${body} `), 'one more byte');
      expectHeld(await ask('/sandboxpools?x=1'), 'query');
      expectHeld(await ask('/sandboxpools', { 'X-Session-Id': 'a' }), 'session');
      expectHeld(await ask('/sandboxpools', { 'Idempotency-Key': 'a' }), 'Idempotency-Key');
      expectHeld(await ask('/sandboxpools', { 'If-Match': '"1"' }), 'If-Match');
      expectHeld(await ask('/sandboxpools', { 'If-None-Match': '*' }), 'If-None-Match');
      expectHeld(await ask('/sandboxpools', { 'If-Range': '"1"' }), 'If-Range');
      expectHeld(await ask('/sandboxpools', { 'Last-Event-ID': '7' }), 'Last-Event-ID');
      expectHeld(await ask('/sandboxpools', { Accept: 'application/x-tar' }), 'Accept');
      expectHeld(await colleague.post('/sandboxpools', A_POOL), 'key');
      for (const path of ['/sandboxpools/', '//sandboxpools', '/Sandboxpools'])
        expect((await ask(path)).status, path).to.equal(404);
      expect(under.operations.pools.size).to.equal(0);
    });

    it('the same one does, under /v1 and percent-encoded too, and once', async () => {
      expect((await ask('/v1/sandboxpool%73')).status).to.be.oneOf([201, 404]);
      await ask('/v1/sandboxpools');

      expect(under.operations.pools.size).to.equal(1);
      expect(statusOf()).to.equal('consumed');
    });

    it('does not pass once the grant is too old, by whichever clock', async () => {
      under.clock.advance(10 * 60_000);

      expectHeld(await ask());
      expect((await under.server.tenant.get(`/approvals/${id}`)).json.status).to.equal('expired');
    });

    it('does not pass for a key that was revoked', async () => {
      await under.operations.deleteApiKey(
        under.operations.authenticate(under.server.tenant.key),
        under.operations.authenticate(under.server.tenant.key).keyId,
        false,
      );

      expect((await ask()).status).to.equal(401);
      expect(under.operations.pools.size).to.equal(0);
    });

    it('has one effect where it is repeated 50 times, over two replicas', async () => {
      const { records, operations, clock, server } = under;
      const other = await anApprovingServer([RULE], { records, operations, clock });
      const key = server.tenant.key ?? '';

      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, count) =>
          (count % 2 ? other : under).server.anyone.post('/sandboxpools', A_POOL, { key }),
        ),
      );

      const made = answers.filter(
        ({ status, headers }) => status === 201 && !headers['idempotency-replayed'],
      );
      expect(made).to.have.length(1);
      expect(operations.pools.size).to.equal(1);
      for (const { status } of answers) expect(status).to.be.oneOf([201, 403, 409]);
      await other.stop();
    });
  });

  it('a decision comes too late where nobody decided in time', async () => {
    under.clock.advance(15 * 60_000);
    under.sessions.set('olga', aSession({ authenticatedAt: under.clock.now() }));

    expect((await under.approve(id)).json.errorCode).to.equal('ALREADY_DECIDED');
    expectHeld(await ask());
  });

  it('a clock that jumps back wakes nothing that has expired', async () => {
    const other = approvalIdOf(await ask('/sandboxpools', { 'X-Session-Id': 'other' }));
    await under.approve(id);
    const expire = expireApproval(under.parts.mirror, () => under.clock.now());
    under.clock.advance(20 * 60_000);
    for (const each of [id, other]) await expire(each, () => true);
    under.clock.advance(-60 * 60_000);

    expect((await under.approve(other)).json.errorCode).to.equal('ALREADY_DECIDED');
    expect(approvalIdOf(await ask())).to.not.equal(id);
    expect(statusOf()).to.equal('expired');
    expect(under.operations.pools.size).to.equal(0);
  });

  it('hide nothing of what was sent, and show it to operators alone', async () => {
    const raw = JSON.stringify({ ...A_POOL, labels: { x: '‮<script>alert(1)</script>' } });
    const asked = approvalIdOf(await under.server.tenant.post('/sandboxpools', undefined, { raw }));
    const headers = { Cookie: '__Host-sandpool-session=olga' };

    const shown = JSON.parse(
      (await under.server.anyone.get(`/approvals/${asked}`, { headers })).text,
    );
    expect(shown.body).to.equal(raw);
    under.sessions.set('vera', aSession({ operator: 'vera', role: 'viewer' }));
    const vera = { headers: { Cookie: '__Host-sandpool-session=vera' } };
    expect((await under.server.anyone.get(`/approvals/${asked}`, vera)).text).not.to.include('<s');
    for (const client of [under.server.tenant, under.server.admin])
      expect((await client.get(`/approvals/${asked}`)).json).not.to.have.property('body');
    expect(JSON.stringify([...under.records.records.values()])).not.to.include('script');
  });

  describe('by the spelling of a name', () => {
    const rule = 'require operation=deletePool path=/sandboxpools/web';
    const rules = [
      rule,
      'require operation=deleteApiKeyByName',
      'require operation=createApiKeyForTenant',
    ];

    it('a pool is held however it is named', async () => {
      const spelled = await anApprovingServer(rules);
      const { tenant, admin } = spelled.server;
      await tenant.post('/sandboxpools', A_POOL);
      for (const [client, path] of [
        [tenant, '/sandboxpools/web'],
        [tenant, '/v1/sandboxpools/web'],
        [tenant, '/sandboxpools/%77eb'],
        [tenant, '/sandboxpools/local::web'],
        [admin, '/sandboxpools/team-blue%2Fweb'],
        [admin, '/sandboxpools/web?namespace=team-blue'],
      ] as const) {
        const { status, json } = await client.delete(path);
        expect([status, json.errorCode], path).to.deep.equal([403, 'APPROVAL_REQUIRED']);
      }
      expect(spelled.operations.pools.size).to.equal(1);
      await spelled.stop();
    });

    it('a key is held however it is named, and an admin’s POST /api-keys for others', async () => {
      const spelled = await anApprovingServer(rules);
      const { admin, tenant } = spelled.server;
      const { name = '' } = (await tenant.post('/api-keys', { name: 'k' })).json;
      for (const path of [
        `/admin/api-keys/${name.replace('/', '%2F')}`,
        `/admin/api-keys/${name}`,
        `/v1/admin/api-keys/${name}`,
      ])
        approvalIdOf(await admin.delete(path));
      for (const body of [{ role: 'admin' }, { team: 'red' }, { user: 'eve' }])
        approvalIdOf(await admin.post('/api-keys', body));
      expect((await tenant.post('/api-keys', {})).status).to.equal(201);
      await spelled.stop();
    });
  });

  it('of another tenant’s sandbox or key asks nobody, and says that it is not there', async () => {
    const { server, records, stop, operations } = await anApprovingServer(['require']);
    const caller = operations.authenticate(server.tenant.key);
    await operations.createPool(caller, {
      ...{ name: 'web', replicas: 1, labels: {}, annotations: {} },
      source: { templateName: 'default' },
    });
    const { id } = await operations.claimSandbox(caller, { poolName: 'web' });
    const ask = (client: HttpClient) => [
      client.get(`/sandboxes/${id}`),
      client.delete(`/sandboxes/${id}`),
      client.post(`/sandboxes/${id}/exec`, { command: 'id' }),
      client.get(`/sandboxes/${id}/files?path=%2Fetc%2Fpasswd`),
      client.put(`/sandboxes/${id}/state`, { state: 'paused' }),
      client.delete(`/api-keys/${caller.keyId}`),
    ];
    for (const { status, json } of await Promise.all(ask(server.stranger)))
      expect([status, json.errorCode]).to.deep.equal([
        404,
        json.errorCode === 'API_KEY_NOT_FOUND' ? json.errorCode : 'SANDBOX_NOT_FOUND',
      ]);
    expect(records.records.size).to.equal(0);
    for (const answer of await Promise.all(ask(server.tenant))) approvalIdOf(answer);
    await stop();
  });

  it('what another tenant has is no more to be seen than without rules', async () => {
    const { server, records, stop } = await anApprovingServer(['require method=DELETE']);
    await server.tenant.post('/sandboxpools', A_POOL);
    for (const name of ['web', 'none'])
      for (const [path, code] of [
        [`/sandboxpools/${name}?namespace=team-blue`, 'ADMIN_REQUIRED'],
        [`/sandboxpools/team-blue%2F${name}`, 'POOL_NOT_FOUND'],
      ] as const)
        expect((await server.stranger.delete(path)).json.errorCode, path).to.equal(code);
    expect(records.records.size).to.equal(0);
    await stop();
  });

  it('a name that was made anew is another thing than the one that was approved', async () => {
    const { server, approve, operations } = await renamed();
    await approve(approvalIdOf(await server.tenant.delete('/sandboxpools/web')));
    const [key, pool] = [...operations.pools][0] ?? [];
    if (!key || !pool) throw new Error('there is no pool');
    operations.pools.set(key, { ...pool, uid: 'another' });

    expect((await server.tenant.delete('/sandboxpools/web')).json.errorCode).to.equal(
      'APPROVAL_REQUIRED',
    );
    expect(operations.pools.size).to.equal(1);
    await server.stop();
  });

  it('a member that was made anew is another one, too', async () => {
    const { server, approve, operations, stop } = await anApprovingServer([
      'require method=DELETE',
    ]);
    const { tenant } = server;
    await tenant.post('/envs', { name: 'e', templateRef: { name: 'default' } });
    await tenant.post('/envs/e/sandboxpools', { name: 'web', replicas: 1 });
    const remove = (name = 'web') => tenant.delete(`/envs/e/sandboxpools/${name}`);
    const id = approvalIdOf(await remove());
    await approve(id);
    for (const [key, env] of operations.envs)
      operations.envs.set(key, {
        ...env,
        members: env.members.map((member) => ({ ...member, createdAt: member.createdAt + 1 })),
      });

    expect(approvalIdOf(await remove())).not.to.equal(id);
    expect((await remove('none')).status).to.equal(404);
    await stop();
  });

  const renamed = async (): Promise<ApprovingServer> => {
    const other = await anApprovingServer(['require method=DELETE']);
    await other.server.tenant.post('/sandboxpools', A_POOL);
    return other;
  };

  it('a key that a gated key makes is gated, and rules find it', async () => {
    const gated = await anApprovingServer(['require key=gated operation=createPool']);
    const { tenant, anyone } = gated.server;
    const first = (await tenant.post('/api-keys', { gated: true })).json.apiKey ?? '';
    const second = (await anyone.post('/api-keys', {}, { key: first })).json.apiKey ?? '';

    for (const key of [first, second])
      approvalIdOf(await anyone.post('/sandboxpools', A_POOL, { key }));
    expect((await tenant.post('/sandboxpools', A_POOL)).status).to.equal(201);
    await gated.stop();
  });

  it('uploads wait too, are bound to every byte, and are of a size that a person can look at', async () => {
    const uploads = await anApprovingServer(['require operation=writeFile']);
    const { tenant } = uploads.server;
    await tenant.post('/sandboxpools', A_POOL);
    const { sandbox } = (await tenant.post('/sandboxes', { poolName: 'web' })).json;
    const put = (raw: string): Promise<HttpAnswer> =>
      tenant.put(`/sandboxes/${sandbox?.['sandboxId']}/files?path=%2Ftmp%2Fa`, undefined, {
        raw,
        headers: { 'Content-Type': 'application/octet-stream' },
      });

    await uploads.approve(approvalIdOf(await put('good')));
    approvalIdOf(await put('evil'));
    expect((await put('x'.repeat(262_145))).status).to.equal(413);
    expect((await put('good')).status).to.equal(201);
    await uploads.stop();
  });
});
