import { expect } from 'chai';
import { sandboxUuidFailed, unavailable } from '../../src/model/refusals.ts';
import { anEngine, callsOf, failing, hangs } from '../support/harness/engine-operations.ts';
import { eventually } from '../support/harness/eventually.ts';
import { v7 } from 'uuid';
import { aServer, type TestServer } from './a-server.ts';

describe('sandboxes over HTTP', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
    await server.makeShells(2);
  });
  afterEach(() => server.stop());

  const claimed = async (): Promise<string> =>
    (await server.tenant.post('/sandboxes', { poolName: 'shells' })).json.sandbox!.sandboxId!;

  describe('POST /sandboxes', () => {
    it('returns 201 with the claimed sandbox', async () => {
      const answer = await server.tenant.post('/sandboxes', { poolName: 'shells' });
      expect(answer.status).to.equal(201);
      expect(answer.headers['content-type']).to.equal('application/json; charset=utf-8');
      const id = answer.json.sandbox!.sandboxId!;
      expect(answer.json).to.deep.equal({
        sandbox: {
          sandboxId: id,
          namespace: 'team-blue',
          poolName: 'shells',
          podName: `sb-${id}`,
          status: 'Running',
          claimedAt: '2026-03-01T12:00:00.000Z',
          team: 'blue',
          user: 'ada',
        },
      });
    });

    it('accepts an idle timeout next to the pool', async () => {
      for (const [idleTimeout, expected] of [
        ['90s', 90_000],
        ['0', 0],
        [0, 0],
        [null, 0],
      ] as const) {
        const { json } = await server.tenant.post('/sandboxes', {
          poolName: 'shells',
          idleTimeout,
        });
        const id = json.sandbox!.sandboxId!;
        expect(server.operations.sandboxes.get(id)?.idleTimeoutMs).to.equal(expected);
        await server.tenant.delete(`/sandboxes/${id}`);
      }
    });

    it('accepts a wait time of up to 300 s', async () => {
      const claims = callsOf(server.operations, 'claimSandbox');
      await server.tenant.put('/sandboxpools/shells', { replicas: 4 });
      for (const waitTimeoutSeconds of [7, 300, 0])
        await server.tenant.post('/sandboxes', { poolName: 'shells', waitTimeoutSeconds });
      await server.tenant.post('/sandboxes', { poolName: 'shells' });
      expect(claims.map(([, { waitMs }]) => waitMs)).to.deep.equal([7_000, 300_000, 0, 0]);

      for (const waitTimeoutSeconds of [301, -1, 1.5, '5', true, null]) {
        const { status, json } = await server.tenant.post('/sandboxes', {
          poolName: 'shells',
          waitTimeoutSeconds,
        });
        expect([status, json.errorCode, json.detail]).to.deep.equal([
          400,
          'INVALID_ARGUMENT',
          { field: 'waitTimeoutSeconds' },
        ]);
      }
    });

    it('notifies a waiting claim that its client has left', async () => {
      const signals: AbortSignal[] = [];
      const { claimSandbox } = server.operations;
      const client = new AbortController();
      Object.assign(server.operations, {
        claimSandbox: (...[, , signal]: Parameters<typeof claimSandbox>) =>
          new Promise((_, reject) => {
            if (!signal) return reject(new Error('no signal'));
            signals.push(signal);
            signal.addEventListener('abort', () => {
              reject(new Error('gone'));
            });
          }),
      });
      const asked = server.tenant
        .post(
          '/sandboxes',
          { poolName: 'shells', waitTimeoutSeconds: 9 },
          { signal: client.signal },
        )
        .catch(String);
      await eventually(() => signals.length === 1, 'it waits');
      expect(signals[0]?.aborted).to.equal(false);
      client.abort();
      await asked;

      await eventually(() => signals[0]?.aborted === true, 'it is told');
      Object.assign(server.operations, { claimSandbox });
    });

    it('names the invalid field', async () => {
      for (const [body, field] of [
        [{ poolName: 7 }, 'poolName'],
        [{ poolName: null }, 'poolName'],
        [{ poolName: ['a'] }, 'poolName'],
        [{ poolName: 'a\0' }, 'poolName'],
        [{ poolName: 'x'.repeat(513) }, 'poolName'],
        [{ poolName: { length: { toString: 1 } } }, 'poolName'],
        [{ poolName: 'shells', idleTimeout: 'soon' }, 'idleTimeout'],
        [{ poolName: 'shells', idleTimeout: 5 }, 'idleTimeout'],
        [{ poolName: 'shells', idleTimeout: '-5s' }, 'idleTimeout'],
      ] as const) {
        const answer = await server.tenant.post('/sandboxes', body);
        expect(answer.status, JSON.stringify(body)).to.equal(400);
        expect(answer.json.errorCode).to.equal('INVALID_ARGUMENT');
        expect(answer.json.detail).to.deep.equal({ field });
      }
    });

    it('accepts unknown fields without an effect', async () => {
      const answer = await server.tenant.post('/sandboxes', {
        poolName: 'shells',
        colour: 'red',
        nested: { deep: [1] },
      });
      expect(answer.status).to.equal(201);
      expect(answer.json.sandbox).not.to.have.any.keys('colour', 'nested');
    });

    it('returns 403 for a pool of another team or user', async () => {
      for (const client of [server.colleague, server.stranger, server.admin]) {
        const answer = await client.post('/sandboxes', { poolName: 'shells' });
        expect(answer.status).to.equal(403);
        expect(answer.json).to.deep.equal({
          error: 'pool belongs to another team/user; create in a pool of your own',
          errorCode: 'POOL_NOT_OWNED',
        });
      }
    });

    it('returns 409 while the pool is being deleted', async () => {
      server.operations.records.pools.remove = hangs;
      await server.tenant.delete('/sandboxpools/shells');
      const answer = await server.tenant.post('/sandboxes', { poolName: 'shells' });
      expect([answer.status, answer.json.errorCode]).to.deep.equal([409, 'CONFLICT']);
    });

    it("returns 500 in the contract's form for an unusable id", async () => {
      failing(server.operations, sandboxUuidFailed(), 'claimSandbox');
      const answer = await server.tenant.post('/sandboxes', { poolName: 'shells' });
      expect(answer.status).to.equal(500);
      expect(answer.json).to.deep.equal({
        error: 'failed to generate sandbox UUID',
        errorCode: 'INTERNAL',
      });
    });

    it('returns 503 with Retry-After if a component is unavailable', async () => {
      failing(server.operations, unavailable('the store is away', 2.2), 'claimSandbox');
      const answer = await server.tenant.post('/sandboxes', { poolName: 'shells' });
      expect([answer.status, answer.json.errorCode, answer.headers['retry-after']]).to.deep.equal([
        503,
        'UNAVAILABLE',
        '3',
      ]);
    });
  });

  describe('GET /sandboxes/{sandboxId}', () => {
    it('returns the sandbox with its endpoints', async () => {
      const id = await claimed();
      const answer = await server.tenant.get(`/sandboxes/${id}`);
      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal({
        sandbox: {
          sandboxId: id,
          namespace: 'team-blue',
          poolName: 'shells',
          podName: `sb-${id}`,
          status: 'Running',
          claimedAt: '2026-03-01T12:00:00.000Z',
          team: 'blue',
          user: 'ada',
          endpoints: {},
          idleTimeout: '30m',
          idleExpiresAt: '2026-03-01T12:30:00.000Z',
        },
      });
    });

    it('returns the same 404 for unknown, foreign, finished and impossible ids', async () => {
      const id = await claimed();
      const finished = await claimed();
      await server.tenant.delete(`/sandboxes/${finished}`);
      const answers = [
        await server.tenant.get(`/sandboxes/${v7()}`),
        await server.colleague.get(`/sandboxes/${id}`),
        await server.stranger.get(`/sandboxes/${id}`),
        await server.tenant.get(`/sandboxes/${finished}`),
        await server.tenant.get('/sandboxes/nonsense'),
        await server.tenant.get(`/sandboxes/${id.toUpperCase()}`),
        await server.tenant.get('/sandboxes/%2e%2e'),
        await server.tenant.get('/sandboxes/%ff%00'),
        await server.tenant.get('/sandboxes/%zz'),
        await server.tenant.get(`/sandboxes/${'a'.repeat(9_000)}`),
        await server.tenant.get('/sandboxes/6ba7b810-9dad-41d1-80b4-00c04fd430c8'),
      ];
      for (const answer of answers) {
        expect(answer.status).to.equal(404);
        expect(answer.json).to.deep.equal({
          error: 'sandbox not found or already terminated',
          errorCode: 'SANDBOX_NOT_FOUND',
        });
      }
    });
  });

  describe('GET /sandboxes/{sandboxId}/is_ready', () => {
    it('returns 200 if all are ready, and otherwise 503 with the same body, without Retry-After', async () => {
      const probed: { failure?: string } = {};
      await server.stop();
      const operations = anEngine({ spec: { endpoints: [{ name: 'web', port: 80 }] } });
      operations.driver.probes = () => [{ endpoint: 'web', ...probed }];
      server = await aServer({ operations });
      await server.makeShells(1);
      const id = await claimed();
      const ready = await server.tenant.get(`/sandboxes/${id}/is_ready`);
      expect(ready.status).to.equal(200);
      expect(JSON.parse(ready.text)).to.deep.equal({
        sandboxId: id,
        ready: true,
        endpoints: { web: { ready: true, message: 'its probe passes' } },
      });
      expect(ready.headers).to.include({
        deprecation: '@1767225600',
        link: `</sandboxes/${id}>; rel="successor-version"`,
      });
      const asked = await server.tenant.get(`/v1/sandboxes/${id}/is_ready`);
      expect(asked.headers['link'], 'under /v1').to.equal(
        `</v1/sandboxes/${id}>; rel="successor-version"`,
      );
      probed.failure = 'GET / answered 503';
      const unready = await server.tenant.get(`/sandboxes/${id}/is_ready`);
      expect(unready.status).to.equal(503);
      expect(unready.headers).to.not.have.property('retry-after');
      expect(JSON.parse(unready.text)).to.deep.equal({
        sandboxId: id,
        ready: false,
        endpoints: { web: { ready: false, message: 'GET / answered 503' } },
      });
    });
  });

  describe('GET /sandboxes', () => {
    it('lists records in full, newest first, with the page', async () => {
      const first = await claimed();
      server.operations.clock.advance(12_000);
      const second = await claimed();
      await server.tenant.delete(`/sandboxes/${first}`);
      const answer = await server.tenant.get('/sandboxes');
      expect(answer.status).to.equal(200);
      expect(answer.json).to.have.all.keys('items', 'total', 'limit', 'offset');
      expect(answer.json).to.include({ total: 2, limit: 20, offset: 0 });
      expect(answer.json.items![0]).to.deep.equal({
        sandboxId: second,
        namespace: 'team-blue',
        poolName: 'shells',
        podName: `sb-${second}`,
        status: 'Running',
        claimedAt: '2026-03-01T12:00:12.000Z',
        startedAt: '2026-03-01T12:00:00.000Z',
        durationSeconds: 0,
        cpu: '500m',
        memory: '256Mi',
        team: 'blue',
        user: 'ada',
        containerImages: { main: 'host' },
      });
      expect(answer.json.items![1]).to.include({
        sandboxId: first,
        status: 'Completed',
        terminatedAt: '2026-03-01T12:00:12.000Z',
        recycledAt: '2026-03-01T12:00:12.000Z',
        durationSeconds: 12,
        endReason: 'deleted',
      });
    });

    it('pages and filters', async () => {
      await claimed();
      const second = await claimed();
      await server.tenant.delete(`/sandboxes/${second}`);
      const page = await server.tenant.get('/sandboxes?limit=1&offset=1');
      expect(page.json).to.include({ total: 2, limit: 1, offset: 1 });
      expect(page.json.items).to.have.length(1);
      expect(
        (await server.tenant.get('/sandboxes?phase=Completed&poolName=shells')).json.items![0]!
          .sandboxId,
      ).to.equal(second);
      expect((await server.tenant.get('/sandboxes?poolName=other')).json).to.deep.equal({
        items: [],
        total: 0,
        limit: 20,
        offset: 0,
      });
    });

    for (const phase of ['Idle', 'Starting', 'Running', 'Stopping', 'Failed', 'Completed']) {
      it(`accepts ${phase} as a phase`, async () => {
        const lists = callsOf(server.operations, 'listSandboxes');
        expect((await server.tenant.get(`/sandboxes?phase=${phase}`)).status).to.equal(200);
        expect(lists.at(-1)?.[1]).to.deep.equal({ phase });
      });
    }

    for (const [query, field] of [
      ['limit=0', 'limit'],
      ['limit=1001', 'limit'],
      ['limit=-1', 'limit'],
      ['limit=1.5', 'limit'],
      ['limit=', 'limit'],
      ['limit=1e2', 'limit'],
      ['limit=0000000001', 'limit'],
      ['limit=%201', 'limit'],
      ['offset=-1', 'offset'],
      ['offset=1000000000', 'offset'],
      ['offset=x', 'offset'],
      ['phase=idle', 'phase'],
      ['phase=', 'phase'],
      ['limit=5&limit=5', 'limit'],
      ['phase=Idle&phase=Idle', 'phase'],
      ['x=1&x=2', 'x'],
    ] as const) {
      it(`refuses ?${query}`, async () => {
        const answer = await server.tenant.get(`/sandboxes?${query}`);
        expect(answer.status).to.equal(400);
        expect(answer.json.errorCode).to.equal('INVALID_ARGUMENT');
        expect(answer.json.detail!.field).to.equal(field);
      });
    }

    it('accepts the bounds themselves', async () => {
      for (const query of ['limit=1', 'limit=1000', 'offset=0', 'offset=999999999', 'limit=020']) {
        expect((await server.tenant.get(`/sandboxes?${query}`)).status, query).to.equal(200);
      }
    });

    it('names the allowed phases', async () => {
      const answer = await server.tenant.get('/sandboxes?phase=Sleeping');
      expect(answer.json.detail).to.deep.equal({
        field: 'phase',
        allowed: ['Idle', 'Starting', 'Running', 'Stopping', 'Failed', 'Completed'],
      });
    });

    it('reserves the filters of admins', async () => {
      for (const query of [
        'namespace=team-red',
        'team=red',
        'user=eve',
        'all=true',
        'all=false',
        'all',
      ]) {
        const answer = await server.tenant.get(`/sandboxes?${query}`);
        expect([answer.status, answer.json.errorCode], query).to.deep.equal([
          403,
          'ADMIN_REQUIRED',
        ]);
      }
      await claimed();
      const lists = callsOf(server.operations, 'listSandboxes');
      expect(
        (await server.admin.get('/sandboxes?all=true&namespace=team-blue&team=blue&user=ada')).json
          .total,
      ).to.equal(1);
      expect(lists.at(-1)?.[1]).to.deep.equal({
        all: true,
        namespace: 'team-blue',
        team: 'blue',
        user: 'ada',
      });
    });
  });
});
