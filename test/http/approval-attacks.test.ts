import { expect } from 'chai';
import { expireApproval } from '../../src/services/approvals/approval-writer.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import {
  aSession,
  anApprovingServer,
  approvalIdOf,
  type ApprovingServer,
  madeAnew,
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

  describe('by another approver', () => {
    it("fail with any key: the requester's, a colleague's, an admin's, a stranger's", async () => {
      const { tenant, colleague, admin, stranger } = under.server;
      for (const client of [tenant, colleague, admin, stranger]) {
        const { status, json } = await client.post(`/approvals/${id}/decision`, APPROVE);
        expect([status, json.errorCode]).to.deep.equal([403, 'CONSOLE_SESSION_REQUIRED']);
      }
      expect(statusOf()).to.equal('pending');
    });

    it('fail without credentials, or with an unknown key', async () => {
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

    it('fail with a key in a cookie or in a query', async () => {
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

    it('fail with a session cookie next to a key', async () => {
      const { status } = await under.server.admin.post(`/approvals/${id}/decision`, APPROVE, {
        headers: { Cookie: '__Host-sandpool-session=olga' },
      });

      expect([status, statusOf()]).to.deep.equal([400, 'pending']);
    });

    it('fail for a viewer, without an identity, and after an old login', async () => {
      under.sessions.set('vera', aSession({ operator: 'vera', role: 'viewer' }));
      under.sessions.set('none', aSession({ operator: '' }));
      under.sessions.set('old', aSession({ authenticatedAt: under.clock.now() - 15 * 60_000 - 1 }));
      for (const session of ['vera', 'none', 'old'])
        expect((await under.decide(id, APPROVE, session)).status, session).to.equal(403);
      expect(statusOf()).to.equal('pending');
    });

    it('fail for the requester, by the same name, another name of theirs, or a descendant key', async () => {
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

    it('do not include the only operator, who can approve their own requests', async () => {
      const alone = await anApprovingServer([RULE], { severalDecide: () => false });
      alone.sessions.set('ada', aSession({ operator: 'ada' }));
      const own = approvalIdOf(await alone.server.tenant.post('/sandboxpools', A_POOL));

      expect((await alone.decide(own, APPROVE, 'ada')).status).to.equal(200);
      await alone.stop();
    });
  });

  describe('by another form of decision', () => {
    it('fail with another method, an overridden method, an unknown decision, or invalid JSON', async () => {
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

    it('fail after the first decision, with a message that they are too late', async () => {
      await under.decide(id, { decision: 'deny' });

      const { status, json } = await under.approve(id);

      expect([status, json.errorCode, json.detail]).to.deep.equal([
        409,
        'ALREADY_DECIDED',
        { status: 'denied' },
      ]);
    });

    it('fail for one of two replicas that decide at the same time', async () => {
      const { records, operations, clock } = under;
      const other = await anApprovingServer([RULE], { records, operations, clock });

      const answers = await Promise.all([
        under.decide(id, APPROVE),
        other.decide(id, { decision: 'deny' }),
      ]);

      expect(answers.map(({ status }) => status)).to.have.members([200, 409]);
      await other.stop();
    });

    it('fail for a session if the rule allows single uses only, or without a session', async () => {
      const headers = { 'X-Session-Id': 'run' };
      const admins = approvalIdOf(
        await under.server.admin.post('/admin/api-keys', { team: 'a', user: 'b' }, { headers }),
      );
      for (const each of [id, admins])
        expect((await under.approve(each, 'session')).json.detail?.['field']).to.equal('scope');
      expect(under.records.records.get(admins)?.status).to.equal('pending');
    });

    it('fail for guessed ids, with the same answer as for foreign ones', async () => {
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

  describe('by another request than the approved one', () => {
    beforeEach(() => under.approve(id));

    it('fail with another body, query, header, key or path', async () => {
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

    it('fail after the first identical request, which may use /v1 and percent encoding', async () => {
      expect((await ask('/v1/sandboxpool%73')).status).to.be.oneOf([201, 404]);
      await ask('/v1/sandboxpools');

      expect(under.operations.pools.size).to.equal(1);
      expect(statusOf()).to.equal('consumed');
    });

    it("fail after the approval's expiry, by either clock", async () => {
      under.clock.advance(10 * 60_000);

      expectHeld(await ask());
      expect((await under.server.tenant.get(`/approvals/${id}`)).json.status).to.equal('expired');
    });

    it('fail with a revoked key', async () => {
      await under.operations.deleteApiKey(
        under.operations.authenticate(under.server.tenant.key),
        under.operations.authenticate(under.server.tenant.key).keyId,
        false,
      );

      expect((await ask()).status).to.equal(401);
      expect(under.operations.pools.size).to.equal(0);
    });

    it('take effect once for 50 repetitions over two replicas', async () => {
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

  it('fail with a decision after the expiry', async () => {
    under.clock.advance(15 * 60_000);
    under.sessions.set('olga', aSession({ authenticatedAt: under.clock.now() }));

    expect((await under.approve(id)).json.errorCode).to.equal('ALREADY_DECIDED');
    expectHeld(await ask());
  });

  it('fail with a clock that jumps back, which revives nothing expired', async () => {
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

  it("see the request's content only as an operator", async () => {
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

    it('fail for a pool under any name', async () => {
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

    it("fail for a key under any name, and for an admin's POST /api-keys for others", async () => {
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

  it("on another tenant's sandbox or key create no approval, and get 404", async () => {
    const { server, records, stop, operations } = await anApprovingServer(['require']);
    const caller = operations.authenticate(server.tenant.key);
    await operations.createPool(caller, {
      ...{ name: 'web', replicas: 1, labels: {}, annotations: {} },
      source: { templateName: 'default' },
    });
    await operations.settled();
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

  it('reveal no more about another tenant than without rules', async () => {
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

  it('fail for a new resource with the name of the approved one', async () => {
    const { server, approve, operations } = await renamed();
    await approve(approvalIdOf(await server.tenant.delete('/sandboxpools/web')));
    await madeAnew(operations, 'web');

    expect((await server.tenant.delete('/sandboxpools/web')).json.errorCode).to.equal(
      'APPROVAL_REQUIRED',
    );
    expect(operations.pools.size).to.equal(1);
    await server.stop();
  });

  it('fail for a recreated member, too', async () => {
    const { server, approve, operations, stop } = await anApprovingServer([
      'require method=DELETE',
    ]);
    const { tenant } = server;
    await tenant.post('/envs', { name: 'e', templateRef: { name: 'default' } });
    await tenant.post('/envs/e/sandboxpools', { name: 'web', replicas: 1 });
    const remove = (name = 'web') => tenant.delete(`/envs/e/sandboxpools/${name}`);
    const id = approvalIdOf(await remove());
    await approve(id);
    const { envs } = operations.records;
    for (const env of envs.records.values())
      await envs.update({
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

  it('fail with a key made with a gated key, which is gated too and matches rules', async () => {
    const gated = await anApprovingServer(['require key=gated operation=createPool']);
    const { tenant, anyone } = gated.server;
    const first = (await tenant.post('/api-keys', { gated: true })).json.apiKey ?? '';
    const second = (await anyone.post('/api-keys', {}, { key: first })).json.apiKey ?? '';

    for (const key of [first, second])
      approvalIdOf(await anyone.post('/sandboxpools', A_POOL, { key }));
    expect((await tenant.post('/sandboxpools', A_POOL)).status).to.equal(201);
    await gated.stop();
  });

  it('fail for uploads, which are bound to every byte and limited to a readable size', async () => {
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
