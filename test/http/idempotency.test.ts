import { expect } from 'chai';
import { unavailable } from '../../src/model/refusals.ts';
import { eventually } from '../support/harness/eventually.ts';
import { MemoryAnswerRows } from '../support/fakes/memory-answer-rows.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { aServer, type TestServer } from './a-server.ts';

const DAY_MS = 86_400_000;

describe('Idempotency-Key', () => {
  let server: TestServer;
  let rows: MemoryAnswerRows;

  beforeEach(async () => {
    rows = new MemoryAnswerRows();
    server = await aServer({ operations: anEngine({ answers: rows }) });
    await server.makeShells(5);
  });
  afterEach(() => server.stop());

  const under = (key: string) => ({ headers: { 'Idempotency-Key': key } });
  const claim = (
    key = 'k1',
    body: object = { poolName: 'shells' },
    client = server.tenant,
    path = '/sandboxes',
  ) => client.post(path, body, under(key));

  it('returns the first answer to a repetition, byte for byte, and marks it', async () => {
    const first = await claim();
    server.operations.clock.advance(DAY_MS / 2);
    const again = await claim();

    expect(first.status).to.equal(201);
    expect(first.headers).not.to.have.property('idempotency-replayed');
    expect([again.status, again.text, again.headers['idempotency-replayed']]).to.deep.equal([
      201,
      first.text,
      'true',
    ]);
    expect(server.operations.sandboxes.size).to.equal(1);
  });

  it('works the same under /v1', async () => {
    const first = await claim();

    expect(
      (await claim('k1', { poolName: 'shells' }, server.tenant, '/v1/sandboxes')).text,
    ).to.equal(first.text);
  });

  it('refuses another body with 422', async () => {
    await claim();
    const other = await claim('k1', { poolName: 'shells', idleTimeout: '5m' });

    expect([other.status, other.json.errorCode]).to.deep.equal([422, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('refuses a repetition with 409 and Retry-After while the first is in progress', async () => {
    const { operations } = server;
    const create = operations.createPool;
    let go: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    const started = new Promise<void>((resolve) => {
      Object.assign(operations, {
        createPool: async (...call: Parameters<typeof create>) => {
          resolve();
          await held;
          return create(...call);
        },
      });
    });
    const body = { name: 'more', templateName: 'default' };
    const first = server.tenant.post('/sandboxpools', body, under('k2'));
    await started;

    const second = await server.tenant.post('/sandboxpools', body, under('k2'));
    go();

    expect([second.status, second.json.errorCode, second.headers['retry-after']]).to.deep.equal([
      409,
      'IDEMPOTENCY_IN_FLIGHT',
      '1',
    ]);
    expect((await first).status).to.equal(201);
    expect((await server.tenant.post('/sandboxpools', body, under('k2'))).status).to.equal(201);
  });

  it('stays in flight after a refusal until the outcome of the claim is known', async () => {
    const { operations } = server;
    const { claimSandbox } = operations;
    let settle: () => void = () => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    Object.assign(operations, {
      claimSandbox: async (...[, { opening }]: Parameters<typeof claimSandbox>) => {
        await opening?.open();
        throw unavailable('not yet');
      },
      pendingClaim: () => settled,
    });
    expect((await claim()).status).to.equal(503);
    Object.assign(operations, { claimSandbox, pendingClaim: () => undefined });

    expect([(await claim()).status, (await claim()).json.errorCode]).to.deep.equal([
      409,
      'IDEMPOTENCY_IN_FLIGHT',
    ]);
    settle();
    await settled;
    await eventually(async () => (await claim()).status === 201, 'it is carried out anew');
  });

  it('stores only 2xx answers', async () => {
    const refused = await claim('k3', { poolName: 'later' });
    expect(refused.status).to.equal(404);
    await server.tenant.post('/sandboxpools', {
      name: 'later',
      templateName: 'default',
      replicas: 1,
    });

    expect((await claim('k3', { poolName: 'later' })).status).to.equal(201);
  });

  it('stores an answer for 24 hours', async () => {
    const key = await server.operations.key('blue', 'ada', 'user', 3 * DAY_MS);
    const ask = async (): Promise<string> =>
      (await server.tenant.post('/sandboxes', { poolName: 'shells' }, { key, ...under('k1') }))
        .text;
    const first = await ask();
    server.operations.clock.advance(DAY_MS - 1);
    expect(await ask()).to.equal(first);
    server.operations.clock.advance(1);

    expect(await ask()).not.to.equal(first);
  });

  it('identifies another request with another key, path or credential', async () => {
    const first = await claim();
    expect((await claim('k2')).text).not.to.equal(first.text);
    expect((await claim('k1', { poolName: 'shells' }, server.colleague)).status).to.equal(403);
    expect(
      (
        await server.tenant.post(
          '/sandboxpools',
          { name: 'other', templateName: 'default' },
          under('k1'),
        )
      ).status,
    ).to.equal(201);
  });

  it('compares bodies even for operations without fields', async () => {
    const sync = (body?: object) =>
      server.tenant.post('/sandboxpools/shells/sync-template', body, under('k1'));

    expect((await sync({ a: 1 })).status).to.equal(200);
    expect((await sync({ a: 2 })).status).to.equal(422);
    expect((await sync({ a: 1 })).headers['idempotency-replayed']).to.equal('true');
  });

  it('stores nothing of a preview, which is computed each time', async () => {
    const kept = rows.rows.size;
    for (const repeated of [1, 2]) {
      const preview = await server.tenant.post(
        '/sandboxpools/shells/sync-template/preview',
        undefined,
        under('k1'),
      );
      expect([repeated, preview.status, preview.headers['idempotency-replayed']]).to.deep.equal([
        repeated,
        200,
        undefined,
      ]);
    }

    expect(rows.rows.size).to.equal(kept);
  });

  it('repeats a new API key, which is stored encrypted', async () => {
    const first = await server.tenant.post('/api-keys', {}, under('k1'));
    const again = await server.tenant.post('/api-keys', {}, under('k1'));

    expect([again.status, again.text, again.headers['cache-control']]).to.deep.equal([
      201,
      first.text,
      'no-store',
    ]);
    const kept = JSON.stringify([...rows.rows.values()]);
    expect(kept).not.to.contain(first.json.apiKey);
    expect(kept).not.to.contain(
      Buffer.from(first.json.apiKey ?? '')
        .toString('base64')
        .slice(0, 24),
    );
    expect(kept).not.to.contain(server.tenant.key);
  });

  it('returns the answer even if the request cannot be released', async () => {
    const requests = aCoordination({ now: () => 0, at: () => () => {} });
    const cut = await aServer({
      requests: {
        ...requests,
        giveUpRequest: async () => {
          throw unavailable('away');
        },
      },
    });
    try {
      const refused = await cut.tenant.post(
        '/sandboxpools',
        { name: 'p', templateName: 'nope' },
        under('k1'),
      );
      expect([refused.status, refused.json.errorCode]).to.deep.equal([
        404,
        'SANDBOX_TEMPLATE_NOT_FOUND',
      ]);
    } finally {
      await cut.stop();
    }
  });

  describe('with a first answer lost before it was stored', () => {
    let forgetful: TestServer;
    beforeEach(async () => {
      const requests = aCoordination({ now: () => 0, at: () => () => {} });
      forgetful = await aServer({
        requests: {
          ...requests,
          keepAnswer: async (mark, owner) => {
            await requests.giveUpRequest(mark, owner);
            return false;
          },
        },
      });
    });
    afterEach(() => forgetful.stop());

    const ask = (body: object, key = 'k1', client = forgetful.tenant) =>
      client.post('/api-keys', body, under(key));

    it('creates one API key, and returns it again', async () => {
      const first = await ask({ description: 'one' });
      const again = await ask({ description: 'one' });

      expect([first.status, again.status, again.text]).to.deep.equal([201, 201, first.text]);
      expect(
        (await forgetful.tenant.get('/api-keys')).json.items?.filter(
          (key) => 'description' in key && key.description === 'one',
        ),
      ).to.have.length(1);
      expect(
        (await forgetful.anyone.get('/api-keys', { key: first.json.apiKey ?? '' })).status,
      ).to.equal(200);
    });

    it('creates another for another request, credential, or path', async () => {
      const keys = [
        await ask({}),
        await ask({}, 'k2'),
        await ask({}, 'k1', forgetful.colleague),
        await ask({}, 'k1', forgetful.admin),
        await forgetful.admin.post('/admin/api-keys', { team: 'blue', user: 'ada' }, under('k1')),
      ].map(({ json }) => json.apiKey);

      expect(new Set(keys).size).to.equal(5);
      expect(keys.every((key) => typeof key === 'string')).to.equal(true);
    });

    it('refuses another body with 422', async () => {
      await ask({ name: 'one' });

      for (const body of [
        { name: 'two' },
        { name: 'one', description: 'x' },
        { name: 'one', expiresAt: '2026-05-01T00:00:00Z' },
      ]) {
        const other = await ask(body);
        expect([other.status, other.json.errorCode], JSON.stringify(body)).to.deep.equal([
          422,
          'IDEMPOTENCY_KEY_REUSED',
        ]);
      }
    });

    it('creates a new one a day later', async () => {
      const key = await forgetful.operations.key('blue', 'ada', 'user', 3 * DAY_MS);
      const made = async () =>
        (await forgetful.anyone.post('/api-keys', {}, { ...under('k1'), key })).json.keyId;
      const first = await made();
      forgetful.operations.clock.advance(DAY_MS - 1);
      const sameDay = await made();
      forgetful.operations.clock.advance(1);
      const later = await made();

      expect(first).to.be.a('string');
      expect([sameDay === first, later === first]).to.deep.equal([true, false]);
    });
  });

  it('is ignored by exec and exec-token', async () => {
    const { json } = await claim();
    const path = `/sandboxes/${json.sandbox?.['sandboxId'] ?? ''}/exec-token`;
    const tokens = [
      await server.tenant.post(path, undefined, under('k1')),
      await server.tenant.post(path, undefined, under('k1')),
    ];

    expect(tokens.map(({ status }) => status)).to.deep.equal([200, 200]);
    expect(tokens[0]?.json.token).not.to.equal(tokens[1]?.json.token);
  });

  it('is refused if it is empty, too long, or not printable', async () => {
    for (const key of ['', ' ', 'x'.repeat(256), 'ü']) {
      const { status, json } = await claim(key);
      expect([key, status, json.detail]).to.deep.equal([key, 400, { field: 'Idempotency-Key' }]);
    }
  });

  it('can be long, and works even if its answer is too long to be stored', async () => {
    const annotations = Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [`a${n}`, 'x'.repeat(4_000)]),
    );
    const body = { name: 'noted', templateName: 'default', annotations };
    expect(
      (await server.tenant.post('/sandboxpools', body, under('k'.repeat(255)))).status,
    ).to.equal(201);

    const again = await server.tenant.post('/sandboxpools', body, under('k'.repeat(255)));
    expect([again.status, again.headers['idempotency-replayed']]).to.deep.equal([201, undefined]);
  });
});
