import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { exchangeRaw, type HttpClient } from '../support/harness/http-client.ts';
import { aTenant, bodyOf } from '../support/harness/on-a-daemon.ts';

const ID = '01890000-0000-7000-8000-000000000000';
const DAY_MS = 86_400_000;
const NO_KEY = {
  error: 'API key required for this operation',
  errorCode: 'API_KEY_REQUIRED',
  detail: null,
};
const BAD_KEY = { error: 'invalid API key', errorCode: 'INVALID_API_KEY' };

/** Each operation with a key, and a body that it takes. */
const OPERATIONS: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['POST', '/sandboxes', { poolName: 'default' }],
  ['GET', '/sandboxes'],
  ['GET', `/sandboxes/${ID}`],
  ['DELETE', `/sandboxes/${ID}`],
  ['POST', `/sandboxes/${ID}/exec`, { command: 'true' }],
  ['POST', `/sandboxes/${ID}/exec-token`],
  ['PUT', `/sandboxes/${ID}/idle-timeout`, { idleTimeout: '1m' }],
  ['POST', '/sandboxpools', { name: 'a', templateName: 'default' }],
  ['GET', '/sandboxpools'],
  ['GET', '/sandboxpools/default'],
  ['PUT', '/sandboxpools/default', {}],
  ['DELETE', '/sandboxpools/none'],
  ['POST', '/api-keys', {}],
  ['POST', '/admin/api-keys', { team: 'a', user: 'b' }],
  ['GET', '/api-keys'],
  ['DELETE', '/api-keys/AAAAAAAAAAAAAAAA'],
  ['GET', '/admin/api-keys'],
  ['DELETE', '/admin/api-keys/a%2Fb'],
  ['DELETE', '/admin/api-keys/a/b'],
  ['POST', '/admin/api-keys/a%2Fb/promote'],
  ['POST', '/admin/api-keys/a/b/promote'],
  ['GET', '/quotas'],
  ['GET', '/admin/quotas/a/b'],
  ['PUT', '/admin/quotas/a/b', {}],
];

describe('the contract: keys and what goes for every request', () => {
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let admin: HttpClient;
  let anyone: HttpClient;

  before(async function () {
    daemon = await DaemonUnderTest.start([
      '--default-pool-replicas',
      '1',
      '--trusted-proxies',
      '127.0.0.1',
    ]);
    client = daemon.client();
    admin = daemon.client(daemon.adminKey);
    anyone = daemon.client('');
  });

  after(async function () {
    await daemon.dispose();
  });

  let addresses = 0;
  /** Each from an address of its own: after 20 rejected keys one would be told to wait. */
  const ask = (
    as: HttpClient,
    [method, path, body]: (typeof OPERATIONS)[number],
    headers: Record<string, string> = {},
    base = '',
  ) =>
    as.send(method, `${base}${path}`, {
      ...(body ? { body } : {}),
      headers: { 'X-Forwarded-For': `192.0.2.${(addresses += 1) % 256}`, ...headers },
    });

  it('every operation without a key is 401 API_KEY_REQUIRED', async () => {
    for (const operation of OPERATIONS) {
      const { headers } = await ask(anyone, operation);
      const bare = await exchangeRaw(
        daemon.run.port,
        `${operation[0]} ${operation[1]} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      expect(bare, operation[1]).to.match(/^HTTP\/1\.1 401 /);
      expect(JSON.parse(bare.split('\r\n\r\n')[1] ?? ''), operation[1]).to.deep.equal(NO_KEY);
      expect(headers['content-type']).to.match(/^application\/json/);
    }
  });

  it('every operation with a key that is malformed, unknown, cut or expired is 401 with one and the same body', async () => {
    const {
      json: { apiKey = '' },
    } = await client.post('/api-keys', { expiresAt: new Date(Date.now() + 10_000).toISOString() });
    const soonOver = daemon.client(apiKey);
    expect((await soonOver.get('/sandboxes')).status).to.equal(200);
    const swapped = daemon.tenantKey.replace(/^spk_[^_]+/, daemon.adminKey.replace(/_[^_]+$/, ''));
    const bodies = new Set<string>();
    const isRefused = async (key: string): Promise<void> => {
      for (const operation of OPERATIONS) {
        const answer = await ask(anyone, operation, { 'SERVICE-API-KEY': key });
        expect(answer.status, `${operation[1]} ${key.length}`).to.equal(401);
        bodies.add(answer.text);
      }
    };
    for (const key of [
      swapped,
      'nonsense',
      'spk_a_b',
      daemon.tenantKey.slice(0, -1),
      `${daemon.tenantKey}0`,
      daemon.tenantKey.toUpperCase(),
      `Bearer ${daemon.tenantKey}`,
    ])
      await isRefused(key);
    await within(
      'it expires',
      async () => (await soonOver.get('/sandboxes')).status === 401 || undefined,
    );
    await isRefused(apiKey);
    expect([...bodies].map((text) => JSON.parse(text) as unknown)).to.deep.equal([BAD_KEY]);
  });

  it('health and readiness need no key', async () => {
    expect((await anyone.get('/healthz')).status).to.equal(200);
    expect((await anyone.get('/readyz')).status).to.equal(200);
  });

  it('the same API is served under /v1', async () => {
    expect(bodyOf(await client.get('/v1/sandboxpools'))).to.deep.equal(
      bodyOf(await client.get('/sandboxpools')),
    );
    for (const operation of OPERATIONS) {
      const [plain, prefixed] = [
        await ask(anyone, operation, { 'SERVICE-API-KEY': 'x' }),
        await ask(anyone, operation, { 'SERVICE-API-KEY': 'x' }, '/v1'),
      ];
      expect(prefixed.status, operation[1]).to.equal(plain.status);
      expect(prefixed.text).to.equal(plain.text);
    }
  });

  it("every answer, good or bad, carries a request id: the client's where it is fit", async () => {
    for (const path of ['/sandboxes', '/sandboxes/x', '/nothing', '/healthz', '/admin/api-keys']) {
      const own = await client.get(path, { headers: { 'X-Request-Id': 'Trace-1.a_b' } });
      expect(own.headers['x-request-id'], path).to.equal('Trace-1.a_b');
      const minted = await client.get(path, { headers: { 'X-Request-Id': 'no good' } });
      expect(minted.headers['x-request-id'], path)
        .to.match(/^[A-Za-z0-9._-]{1,128}$/)
        .and.not.equal('no good');
    }
  });

  it("POST /api-keys takes an empty body or none, and answers a key of the caller's for 90 days or until the caller's ends, shown once", async () => {
    for (const body of [undefined, {}]) {
      const before = Date.now();
      const answer = await client.post('/api-keys', body);
      expect(answer.status).to.equal(201);
      expect(answer.headers['cache-control']).to.equal('no-store');
      const { apiKey, keyId, name, issuedAt, expiresAt, createdBy, ...rest } = bodyOf(
        answer,
      ) as Record<string, string>;
      expect(rest).to.deep.equal({
        user: 'default',
        team: 'default',
        role: 'user',
        description: '',
      });
      expect(keyId).to.be.a('string').that.is.not.empty;
      expect(daemon.tenantKey.split('_')[1]).to.equal(createdBy);
      expect(name).to.match(/^default\/[a-z0-9-]+$/);
      expect(apiKey).to.include(`spk_${keyId}_`);
      expect(Date.parse(issuedAt ?? '')).to.be.within(before - 1_000, Date.now() + 1_000);
      expect(Date.parse(expiresAt ?? '')).to.be.within(
        before + 89 * DAY_MS,
        Date.parse(issuedAt ?? '') + 90 * DAY_MS,
      );
      expect((await daemon.client(apiKey).get('/sandboxpools/default')).status).to.equal(200);
    }
  });

  it('POST /api-keys keeps name and description, and refuses a name that is in use', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { status, json } = await client.post('/api-keys', {
      name: 'ci',
      description: 'of the CI',
      expiresAt,
    });
    expect(status).to.equal(201);
    expect(json).to.include({ name: 'default/ci', description: 'of the CI', expiresAt });
    const again = await client.post('/api-keys', { name: 'ci' });
    expect(again.status).to.equal(409);
    expect(again.json).to.include({ errorCode: 'ALREADY_EXISTS' });
  });

  it('POST /api-keys refuses to name another team, user or role for a tenant', async () => {
    for (const field of [
      { team: 'default' },
      { user: 'default' },
      { role: 'user' },
      { role: 'admin' },
    ]) {
      const answer = await client.post('/api-keys', field);
      expect(answer.status, JSON.stringify(field)).to.equal(403);
      expect(answer.json.errorCode).to.equal('ADMIN_REQUIRED');
    }
  });

  it('expiresAt in the past, beyond 365 days or no time is 400', async () => {
    for (const expiresAt of [
      new Date(Date.now() - 1_000).toISOString(),
      new Date(Date.now() + 366 * DAY_MS).toISOString(),
      'tomorrow',
      '2030-13-01T00:00:00Z',
      7,
      {},
    ]) {
      const answer = await client.post('/api-keys', { expiresAt });
      expect(answer.status, JSON.stringify(expiresAt)).to.equal(400);
      expect(answer.json.errorCode).to.equal('INVALID_ARGUMENT');
      expect(answer.json.detail?.['field']).to.equal('expiresAt');
    }
  });

  it('POST /admin/api-keys makes a key for any team and user, admins too; it needs the admin role', async () => {
    const refused = await client.post('/admin/api-keys', { team: 'a', user: 'b' });
    expect(refused.status).to.equal(403);
    expect(refused.json.errorCode).to.equal('ADMIN_REQUIRED');
    const made = await admin.post('/admin/api-keys', { team: 'red', user: 'ruth', name: 'first' });
    expect(made.status).to.equal(201);
    expect(made.headers['cache-control']).to.equal('no-store');
    expect(made.json).to.include({ team: 'red', user: 'ruth', role: 'user', name: 'red/first' });
    const chief = await admin.post('/admin/api-keys', { team: 'red', user: 'root', role: 'admin' });
    expect(chief.json).to.include({ role: 'admin' });
    expect(
      (await daemon.client(chief.json.apiKey).post('/admin/api-keys', { team: 'x', user: 'y' }))
        .status,
    ).to.equal(201);
    expect(
      (
        await (
          await aTenant(daemon, 'red', 'ruth')
        ).post('/admin/api-keys', { team: 'x', user: 'y' })
      ).status,
    ).to.equal(403);
  });

  it('POST /admin/api-keys needs team and user, as labels, and a role of the two', async () => {
    for (const [body, field] of [
      [{}, 'team'],
      [{ team: 'a' }, 'user'],
      [{ team: 'A', user: 'b' }, 'team'],
      [{ team: 'a', user: '-b' }, 'user'],
      [{ team: 'a', user: 'b', role: 'god' }, 'role'],
      [{ team: 'a', user: 5 }, 'user'],
    ] as const) {
      const answer = await admin.post('/admin/api-keys', body);
      expect(answer.status, JSON.stringify(body)).to.equal(400);
      expect(answer.json.detail?.['field'], JSON.stringify(body)).to.equal(field);
      if (field === 'role')
        expect(answer.json.detail?.['allowed']).to.deep.equal(['user', 'admin']);
    }
  });

  it('a wrong method is 405, a wrong type 415, a body too large 413, bad JSON 400, and nothing 404', async () => {
    const patch = await client.send('PATCH', '/sandboxes');
    expect(patch.status).to.equal(405);
    expect(patch.json.errorCode).to.equal('METHOD_NOT_ALLOWED');
    expect(patch.headers['allow']).to.include('POST');
    const form = await client.post('/sandboxes', undefined, {
      raw: 'poolName=default',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    });
    expect(form.status).to.equal(415);
    expect(form.json.errorCode).to.equal('UNSUPPORTED_MEDIA_TYPE');
    const large = await client.post('/sandboxes', undefined, {
      raw: `{"poolName":"${'x'.repeat(1_048_576)}"}`,
    });
    expect(large.status).to.equal(413);
    expect(large.json.errorCode).to.equal('PAYLOAD_TOO_LARGE');
    for (const raw of [
      '{',
      '[]',
      '"x"',
      '{"poolName":"a","poolName":"b"}',
      '{"constructor":1}',
      `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`,
      Buffer.from([0x7b, 0xff, 0x7d]),
    ]) {
      const bad = await client.post('/sandboxes', undefined, { raw });
      expect(bad.status, String(raw)).to.equal(400);
      expect(bad.json.errorCode).to.equal('INVALID_ARGUMENT');
    }
    const nothing = await client.get('/sandboxen');
    expect(nothing.status).to.equal(404);
    expect(nothing.json.error).to.be.a('string');
  });
});
