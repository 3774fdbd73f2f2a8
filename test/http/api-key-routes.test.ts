import { expect } from 'chai';
import { routesOf } from '../../src/http/server/app.ts';
import { formatApiKey } from '../../src/model/api-key-text.ts';
import { exchangeRaw, parseRaw } from '../support/harness/http-client.ts';
import { anEngine, CONFIG } from '../support/harness/engine-operations.ts';
import { aServer, type TestServer } from './a-server.ts';

const KEY = /^spk_[0-9A-Za-z]{12,}_[0-9A-Za-z]{38,}$/;
const INVALID = { error: 'invalid API key', errorCode: 'INVALID_API_KEY' };

describe('API keys over HTTP', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
  });
  afterEach(() => server.stop());

  describe('the key of a request', () => {
    it('is required, even if the header is empty', async () => {
      expect((await server.anyone.get('/sandboxes', { key: '' })).json).to.deep.equal({
        error: 'API key required for this operation',
        errorCode: 'API_KEY_REQUIRED',
        detail: null,
      });
    });

    it('is not checked for an unknown path or method', async () => {
      expect((await server.anyone.get('/nothing')).status).to.equal(404);
      expect((await server.anyone.delete('/sandboxes')).status).to.equal(405);
    });

    it('is refused with the same body for every fault', async () => {
      const good = await server.operations.key('blue', 'zoe');
      expect((await server.anyone.get('/sandboxes', { key: good })).status).to.equal(200);
      const expired = await server.operations.key('blue', 'old', 'user', 1_000);
      server.operations.clock.advance(1_000);
      const [, keyId = '', rest = ''] = good.split('_');
      const wrong = [
        expired,
        good.slice(0, -1),
        `${good}x`,
        `${good} `.trimEnd().toUpperCase(),
        good.replace('spk_', 'spx_'),
        `${good},${good}`,
        `spk_${keyId}_${rest.slice(0, -1)}${rest.endsWith('0') ? '1' : '0'}`,
        formatApiKey({ keyId, secret: 'A'.repeat(43) }),
        formatApiKey({ keyId: 'A'.repeat(16), secret: rest.slice(0, 43) }),
        'spk__',
        'x'.repeat(8_000),
        '{"$ne":null}',
        '\u00ff\u00fe',
      ];
      for (const key of wrong) {
        const answer = await server.anyone.get('/sandboxes', { key });
        expect(answer.status, key).to.equal(401);
        expect(answer.json).to.deep.equal(INVALID);
        expect(answer.headers['www-authenticate']).to.contain('SERVICE-API-KEY');
      }
      expect((await server.anyone.get('/sandboxes', { key: good })).status).to.equal(200);
    });

    it('is refused if it is given twice', async () => {
      const good = await server.operations.key('blue', 'zoe');
      const field = `SERVICE-API-KEY: ${good}\r\n`;
      const text = await exchangeRaw(
        server.port,
        `GET /sandboxes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${field}${field}\r\n`,
      );
      expect(parseRaw(text).json).to.deep.equal(INVALID);
    });

    it('is checked before path, query and body, by every operation with a key', async () => {
      const rows = routesOf(server.operations).filter(({ access }) => access !== 'open');
      for (const { method, path, operationId } of rows) {
        const odd = `${path.replaceAll(/\{\w+\}/g, '-Odd-')}?limit=many&colour=red`;
        const { status } = await server.anyone.send(
          method,
          odd,
          method === 'GET' ? {} : { raw: 'no json' },
        );
        expect([operationId, status]).to.deep.equal([operationId, 401]);
      }
      expect(rows).to.have.length.above(40);
      expect(
        (await server.tenant.post('/admin/api-keys', undefined, { raw: 'no json' })).status,
      ).to.equal(403);
    });
  });

  describe('POST /api-keys', () => {
    it('creates a key for the caller, shown once and never cached', async () => {
      const answer = await server.tenant.post('/api-keys', {});
      expect(answer.status).to.equal(201);
      expect(answer.headers['cache-control']).to.equal('no-store');
      expect(answer.json).to.have.all.keys(
        'apiKey',
        'keyId',
        'name',
        'user',
        'team',
        'role',
        'description',
        'createdBy',
        'issuedAt',
        'expiresAt',
      );
      expect(answer.json).to.include({
        user: 'ada',
        team: 'blue',
        role: 'user',
        description: '',
        issuedAt: '2026-03-01T12:00:00.000Z',
        expiresAt: '2026-05-30T12:00:00.000Z',
      });
      expect(answer.json.apiKey).to.match(KEY);
      expect(answer.json.name).to.match(/^team-blue\/key-[a-z0-9]+$/);
      expect((await server.anyone.get('/sandboxes', { key: answer.json.apiKey! })).status).to.equal(
        200,
      );
    });

    it('accepts an empty body, and a name, description and expiry', async () => {
      expect((await server.tenant.post('/api-keys')).status).to.equal(201);
      const answer = await server.tenant.post('/api-keys', {
        name: 'ci',
        description: 'for the CI',
        expiresAt: '2026-03-02T00:00:00Z',
      });
      expect(answer.status).to.equal(201);
      expect(answer.json).to.include({
        name: 'team-blue/ci',
        description: 'for the CI',
        expiresAt: '2026-03-02T00:00:00.000Z',
      });
      server.operations.clock.advance(43_200_000);
      expect(
        (await server.anyone.get('/sandboxes', { key: answer.json.apiKey! })).json,
      ).to.deep.equal(INVALID);
    });

    it('returns 409 for a name in use in the namespace', async () => {
      await server.tenant.post('/api-keys', { name: 'ci' });
      const answer = await server.colleague.post('/api-keys', { name: 'ci' });
      expect(answer.status).to.equal(409);
      expect(answer.json).to.deep.equal({
        error: 'API key already exists',
        errorCode: 'ALREADY_EXISTS',
        detail: { hint: 'names are unique in a team; choose another' },
      });
      expect((await server.stranger.post('/api-keys', { name: 'ci' })).status).to.equal(201);
    });

    for (const body of [
      { team: 'red' },
      { user: 'eve' },
      { role: 'admin' },
      { team: 'blue', user: 'ada', role: 'user' },
    ]) {
      it(`returns 403 to a tenant that sends ${JSON.stringify(body)}`, async () => {
        const before = server.operations.records.apiKeys.records.size;
        const answer = await server.tenant.post('/api-keys', body);
        expect([answer.status, answer.json.errorCode]).to.deep.equal([403, 'ADMIN_REQUIRED']);
        expect(server.operations.records.apiKeys.records.size).to.equal(before);
      });
    }

    for (const [body, field] of [
      [{ name: 'No' }, 'name'],
      [{ name: 'a/b' }, 'name'],
      [{ description: 5 }, 'description'],
      [{ description: 'x'.repeat(1_025) }, 'description'],
      [{ expiresAt: 'tomorrow' }, 'expiresAt'],
      [{ expiresAt: 1_800_000_000 }, 'expiresAt'],
      [{ expiresAt: '2026-02-30T00:00:00Z' }, 'expiresAt'],
      [{ expiresAt: '2026-03-01T12:00:00Z' }, 'expiresAt'],
      [{ expiresAt: '2027-03-01T12:00:00.001Z' }, 'expiresAt'],
    ] as const) {
      it(`refuses ${JSON.stringify(body).slice(0, 60)}`, async () => {
        const answer = await server.tenant.post('/api-keys', body);
        expect([answer.status, answer.json.errorCode]).to.deep.equal([400, 'INVALID_ARGUMENT']);
        expect(answer.json.detail).to.deep.equal({ field });
      });
    }

    it('limits the lifetime of a key to 365 days', async () => {
      expect(
        (await server.tenant.post('/api-keys', { expiresAt: '2027-03-01T12:00:00Z' })).status,
      ).to.equal(201);
    });
  });

  describe('a key made with a key', () => {
    const HOUR_MS = 3_600_000;
    const made = async (key: string, body: object) =>
      await server.anyone.post('/api-keys', body, { key });

    it('shows its creator, also in lists', async () => {
      const first = (await server.tenant.post('/api-keys', {})).json;
      const { json } = await made(first.apiKey!, {});
      const createdBy = (json as { readonly createdBy?: string }).createdBy;
      expect(createdBy).to.equal(first.keyId);
      expect((await server.tenant.get('/api-keys')).text).to.contain(
        `"createdBy":"${first.keyId}"`,
      );
      const other = (await server.admin.post('/admin/api-keys', { team: 'green', user: 'gus' }))
        .json as { readonly createdBy?: string };
      const own = (await server.admin.get('/api-keys')).json.items as unknown as readonly {
        readonly keyId: string;
      }[];
      expect(other.createdBy).to.equal(own[0]?.keyId);
    });

    for (const [role, path, body] of [
      ['user', '/api-keys', {}],
      ['admin', '/admin/api-keys', { team: 'green', user: 'gus' }],
    ] as const) {
      it(`expires with its creator by default: ${path}`, async () => {
        const key = await server.operations.key('blue', 'ada', role, HOUR_MS);
        const { json } = await server.anyone.post(path, body, { key });
        expect(json.expiresAt).to.equal('2026-03-01T13:00:00.000Z');
      });

      it(`can expire with its creator, but not later: ${path}`, async () => {
        const key = await server.operations.key('blue', 'ada', role, HOUR_MS);
        expect(
          (await server.anyone.post(path, { ...body, expiresAt: '2026-03-01T13:00:00Z' }, { key }))
            .status,
        ).to.equal(201);
        const answer = await server.anyone.post(
          path,
          { ...body, expiresAt: '2026-03-01T13:00:00.001Z' },
          { key },
        );
        expect([answer.status, answer.json.errorCode, answer.json.detail]).to.deep.equal([
          400,
          'INVALID_ARGUMENT',
          { field: 'expiresAt' },
        ]);
        expect(answer.json.error).to.contain('2026-03-01T13:00:00.000Z');
      });
    }
  });

  describe('POST /admin/api-keys', () => {
    it('creates a key for any team and user', async () => {
      const answer = await server.admin.post('/admin/api-keys', {
        team: 'green',
        user: 'gus',
        name: 'first',
        description: 'hello',
      });
      expect(answer.status).to.equal(201);
      expect(answer.headers['cache-control']).to.equal('no-store');
      expect(answer.json).to.include({
        team: 'green',
        user: 'gus',
        role: 'user',
        name: 'team-green/first',
        description: 'hello',
      });
      const pool = await server.anyone.post(
        '/sandboxpools',
        { name: 'p', templateName: 'default' },
        { key: answer.json.apiKey! },
      );
      expect(pool.json.template).to.include({
        team: 'green',
        user: 'gus',
        namespace: 'team-green',
      });
    });

    it('creates admins', async () => {
      const { json } = await server.admin.post('/admin/api-keys', {
        team: 'ops',
        user: 'ann',
        role: 'admin',
      });
      expect(json.role).to.equal('admin');
      expect(
        (
          await server.anyone.post(
            '/admin/api-keys',
            { team: 'a', user: 'b' },
            { key: json.apiKey! },
          )
        ).status,
      ).to.equal(201);
    });

    it('names faults, and the existing roles', async () => {
      expect((await server.admin.post('/admin/api-keys', {})).json.detail).to.deep.equal({
        field: 'team',
      });
      expect((await server.admin.post('/admin/api-keys', { team: 'a' })).json.detail).to.deep.equal(
        { field: 'user' },
      );
      expect(
        (await server.admin.post('/admin/api-keys', { team: 'A', user: 'b' })).json.detail,
      ).to.deep.equal({ field: 'team' });
      const answer = await server.admin.post('/admin/api-keys', {
        team: 'a',
        user: 'b',
        role: 'root',
      });
      expect(answer.status).to.equal(400);
      expect(answer.json.detail).to.deep.equal({ field: 'role', allowed: ['user', 'admin'] });
    });
  });

  describe('GET /api-keys', () => {
    it("lists the caller's keys, newest first, without a secret or a hash", async () => {
      server.operations.clock.advance(1_000);
      const { json: issued } = await server.tenant.post('/api-keys', {
        name: 'ci',
        description: 'for ci',
      });
      const answer = await server.tenant.get('/api-keys?limit=1');
      expect(answer.status).to.equal(200);
      const { apiKey, ...shown } = issued;
      expect(answer.json).to.deep.equal({ items: [shown], total: 2, limit: 1, offset: 0 });
      expect(shown).to.have.all.keys(
        'keyId',
        'name',
        'user',
        'team',
        'role',
        'description',
        'createdBy',
        'issuedAt',
        'expiresAt',
      );
      expect(answer.text)
        .not.to.contain(apiKey!.split('_')[2]!.slice(0, 10))
        .and.not.contain('hash');
    });

    it('omits keys of other users', async () => {
      const { json } = await server.stranger.post('/api-keys', { name: 'theirs' });
      for (const client of [server.tenant, server.colleague])
        expect((await client.get('/api-keys')).text).not.to.contain(json.keyId);
    });
  });

  describe('DELETE /api-keys/{keyId}', () => {
    it('returns the same for foreign, unknown and malformed ids', async () => {
      const { json } = await server.stranger.post('/api-keys', {});
      for (const id of [json.keyId!, 'AAAAAAAAAAAAAAAA', '..%2F..', '%00']) {
        const answer = await server.tenant.delete(`/api-keys/${id}`);
        expect([answer.status, answer.json]).to.deep.equal(
          [404, { error: 'API key not found', errorCode: 'API_KEY_NOT_FOUND' }],
          id,
        );
      }
      expect((await server.anyone.get('/sandboxes', { key: json.apiKey! })).status).to.equal(200);
    });

    it('releases the name', async () => {
      const { json } = await server.tenant.post('/api-keys', { name: 'ci' });
      await server.tenant.delete(`/api-keys/${json.keyId}`);
      expect((await server.tenant.post('/api-keys', { name: 'ci' })).status).to.equal(201);
    });
  });

  describe('?cascade', () => {
    interface Made {
      readonly key: string;
      readonly keyId: string;
      readonly name: string;
    }
    const made = async (by: string, body: object = {}, path = '/api-keys'): Promise<Made> => {
      const { json, text } = await server.anyone.post(path, body, { key: by });
      if (json.apiKey === undefined || json.keyId === undefined || json.name === undefined)
        throw new Error(text);
      return { key: json.apiKey, keyId: json.keyId, name: json.name };
    };
    const isGood = async ({ key }: Made): Promise<boolean> =>
      (await server.anyone.get('/sandboxes', { key })).status === 200;

    it('includes all descendants of the key, and no others', async () => {
      const first = await made(server.tenant.key!);
      const children = [await made(first.key), await made(first.key)];
      const grandchild = await made(children[0]!.key);
      const sibling = await made(server.tenant.key!);
      const answer = await server.tenant.delete(`/api-keys/${first.keyId}?cascade=true`);
      expect([answer.status, answer.json]).to.deep.equal([
        200,
        { keyId: first.keyId, status: 'deleted', revoked: 4 },
      ]);
      expect(
        await Promise.all([first, ...children, grandchild, sibling].map(isGood)),
      ).to.deep.equal([false, false, false, false, true]);
    });

    it('is off by default: descendants stay', async () => {
      for (const query of ['', '?cascade=false']) {
        const first = await made(server.tenant.key!);
        const child = await made(first.key);
        expect((await server.tenant.delete(`/api-keys/${first.keyId}${query}`)).json).to.deep.equal(
          { keyId: first.keyId, status: 'deleted' },
        );
        expect(await isGood(child)).to.equal(true);
      }
      expect(
        (await server.tenant.delete('/api-keys/AAAAAAAAAAAAAAAA?cascade=maybe')).json.errorCode,
      ).to.equal('INVALID_ARGUMENT');
    });

    for (const spelled of [(name: string) => name, (name: string) => name.replace('/', '%2F')]) {
      it(`includes other users' keys made with an admin's key, for an admin: /admin/api-keys/${spelled('team/name')}`, async () => {
        const ops = await made(
          server.admin.key!,
          { role: 'admin', team: 'ops', user: 'ann' },
          '/admin/api-keys',
        );
        const theirs = await made(ops.key, { team: 'green', user: 'gus' }, '/admin/api-keys');
        const answer = await server.admin.delete(`/admin/api-keys/${spelled(ops.name)}?cascade`);
        expect([answer.status, answer.json]).to.deep.equal([
          200,
          { keyId: ops.keyId, status: 'deleted', revoked: 2 },
        ]);
        expect([await isGood(ops), await isGood(theirs)]).to.deep.equal([false, false]);
      });
    }

    it('needs an admin for a key with the admin role, even one of the same user', async () => {
      const admins = await made(
        server.admin.key!,
        { role: 'admin', team: 'blue', user: 'ada' },
        '/admin/api-keys',
      );
      const theirs = await made(admins.key, { team: 'green', user: 'gus' }, '/admin/api-keys');
      const answer = await server.tenant.delete(`/api-keys/${admins.keyId}?cascade=true`);
      expect([answer.status, answer.json.errorCode]).to.deep.equal([403, 'ADMIN_REQUIRED']);
      expect([await isGood(admins), await isGood(theirs)]).to.deep.equal([true, true]);
    });

    it('includes all keys of a user, and their descendants', async () => {
      const keys = [await made(server.stranger.key!), await made(server.stranger.key!)];
      const answer = await server.admin.delete('/admin/api-keys?team=red&user=eve');
      expect([answer.status, answer.json]).to.deep.equal([
        200,
        { team: 'red', user: 'eve', status: 'deleted', revoked: 3 },
      ]);
      expect([
        ...(await Promise.all(keys.map(isGood))),
        (await server.stranger.get('/sandboxes')).status,
      ]).to.deep.equal([false, false, 401]);
      expect((await server.admin.delete('/admin/api-keys?team=red&user=eve')).json).to.include({
        revoked: 0,
      });
      expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
      const admins = await made(
        server.admin.key!,
        { role: 'admin', team: 'red', user: 'eve' },
        '/admin/api-keys',
      );
      const theirs = await made(admins.key, { team: 'green', user: 'gus' }, '/admin/api-keys');
      expect(
        (await server.admin.delete('/admin/api-keys?team=red&user=eve&cascade')).json,
      ).to.include({ revoked: 2 });
      expect(await isGood(theirs)).to.equal(false);
    });

    it('for a user needs an admin, who names team and user', async () => {
      expect(
        (await server.tenant.delete('/admin/api-keys?team=blue&user=ada')).json.errorCode,
      ).to.equal('ADMIN_REQUIRED');
      expect((await server.admin.delete('/admin/api-keys?team=blue')).json.detail).to.deep.equal({
        field: 'user',
      });
      expect((await server.admin.delete('/admin/api-keys')).json.detail).to.deep.equal({
        field: 'team',
      });
    });
  });

  describe('with keys made by admins only', () => {
    it('a tenant cannot create keys, but can list and revoke them', async () => {
      await server.stop();
      const config = { keys: { ...CONFIG.keys, creation: 'admins' as const } };
      server = await aServer({ operations: anEngine({ config }) });
      const key = await server.operations.key('blue', 'ada');
      const answer = await server.tenant.post('/api-keys', {});
      expect([answer.status, answer.json.errorCode]).to.deep.equal([403, 'ADMIN_REQUIRED']);
      expect((await server.admin.post('/api-keys', {})).status).to.equal(201);
      expect(
        (await server.admin.post('/admin/api-keys', { team: 'blue', user: 'ada' })).status,
      ).to.equal(201);
      expect((await server.tenant.get('/api-keys')).status).to.equal(200);
      expect((await server.tenant.delete(`/api-keys/${key.split('_')[1] ?? ''}`)).status).to.equal(
        200,
      );
    });
  });

  describe('the keys of all tenants', () => {
    it('are listed for admins only', async () => {
      const { json } = await server.stranger.post('/api-keys', {});
      expect((await server.admin.get('/admin/api-keys?limit=1000')).text).to.contain(json.keyId);
      expect((await server.tenant.get('/admin/api-keys')).json.errorCode).to.equal(
        'ADMIN_REQUIRED',
      );
    });

    it("can be revoked by a short name in the admin's own namespace", async () => {
      const { json } = await server.admin.post('/api-keys', { name: 'mine' });
      expect((await server.admin.delete('/admin/api-keys/mine')).json).to.deep.equal({
        keyId: json.keyId,
        status: 'deleted',
      });
    });
  });

  describe('POST /admin/api-keys/{name}/promote', () => {
    for (const path of ['team-blue%2Fci', 'team-blue/ci']) {
      it(`returns 409 for a global key, whether or not a cluster is connected: ${path}`, async () => {
        const { json } = await server.tenant.post('/api-keys', { name: 'ci' });
        const record = server.operations.records.apiKeys.records.get(json.keyId!)!;
        await server.operations.records.apiKeys.remove(record);
        await server.operations.records.apiKeys.create({
          ...record,
          keyId: 'promotedpromoted',
          global: true,
        });
        await server.tenant.delete(`/api-keys/${json.keyId}`);
        const answer = await server.admin.post(`/admin/api-keys/${path}/promote`);
        expect([answer.status, answer.json]).to.deep.equal([
          409,
          { error: 'the API key is already global', errorCode: 'ALREADY_GLOBAL' },
        ]);
      });
    }

    it("accepts a short name in the admin's own namespace", async () => {
      await server.admin.post('/api-keys', { name: 'mine' });
      expect((await server.admin.post('/admin/api-keys/mine/promote')).status).to.equal(503);
    });

    it('returns 404 for an unknown key, and needs an admin', async () => {
      for (const path of ['none', 'team-blue/none', 'team-blue%2Fnone', 'Upper/x', 'a%2Fb%2Fc']) {
        expect(
          (await server.admin.post(`/admin/api-keys/${path}/promote`)).json.errorCode,
          path,
        ).to.equal('API_KEY_NOT_FOUND');
        expect(
          (await server.tenant.post(`/admin/api-keys/${path}/promote`)).json.errorCode,
          path,
        ).to.equal('ADMIN_REQUIRED');
      }
    });
  });

  it('are never logged', async () => {
    const { json } = await server.tenant.post('/api-keys', { description: 'canary-description' });
    await server.anyone.get('/sandboxes?poolName=canary-query', { key: json.apiKey! });
    await server.anyone.get('/sandboxes', { key: `${json.apiKey!}x` });
    const text = JSON.stringify(server.log);
    for (const secret of [json.apiKey!.split('_')[2]!.slice(0, 20), 'canary'])
      expect(text).not.to.contain(secret);
    expect(text).to.contain(json.keyId);
  });
});
