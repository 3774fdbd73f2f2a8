import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSandbox } from '../../src/http/e2b/control/create-sandbox.ts';
import { EffectIsOver } from '../../src/model/approvals/approval-refusals.ts';
import { tooMuchWaits } from '../../src/model/limit-refusals.ts';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { anEngine, failing } from '../support/harness/engine-operations.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';

interface Ask {
  readonly method?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: unknown;
}

interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
}

describe('the compatible API', () => {
  let api: CompatibleApi;
  before(async () => {
    api = await aCompatibleApi();
  });
  after(() => api.stop());

  /** By the tenant's key, unless another or none (empty) is given. */
  const ask = async (
    path: string,
    { method, key = api.keys.tenant, headers = {}, body }: Ask = {},
  ): Promise<Told> => {
    const asked = request(new URL(path, api.url), {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(key === '' ? {} : { 'X-API-KEY': key }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
    });
    asked.end(typeof body === 'string' || body === undefined ? body : JSON.stringify(body));
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of answer.setEncoding('utf8')) text += String(chunk);
    return {
      status: answer.statusCode ?? 0,
      headers: answer.headers,
      body: text === '' ? {} : (JSON.parse(text) as Told['body']),
    };
  };
  const created = async (more: object = {}): Promise<Readonly<Record<string, string>>> => {
    const { status, body } = await ask('/v2/sandboxes', { body: { templateID: 'base', ...more } });
    expect(status, JSON.stringify(body)).to.equal(201);
    return body as Record<string, string>;
  };
  const end = async (...ids: readonly (string | undefined)[]): Promise<void> => {
    for (const id of ids) await ask(`/sandboxes/${id}`, { method: 'DELETE' });
  };

  it('reports an invalid body by its field', async () => {
    const wrong: readonly [string, object | string][] = [
      ['templateID', {}],
      ['templateID', { templateID: 7 }],
      ['templateID', { templateID: 'local::base//registry.example/image' }],
      ['timeout', { templateID: 'base', timeout: -1 }],
      ['timeout', { templateID: 'base', timeout: 1e15 }],
      ['timeout', { templateID: 'base', timeout: 1.5 }],
      ['metadata', { templateID: 'base', metadata: { a: 1 } }],
      ['envVars', { templateID: 'base', envVars: { '1=': 'x' } }],
      ['network.allowOut', { templateID: 'base', network: { allowOut: ['a.example'] } }],
      ['network.rules', { templateID: 'base', network: { rules: { 'a.example': [] } } }],
      ['network.denyOut', { templateID: 'base', network: { denyOut: [7] } }],
      ['volumeMounts', { templateID: 'base', volumeMounts: [{ name: 'v', path: '/v' }] }],
      ['mcp', { templateID: 'base', mcp: { server: {} } }],
      ['body', '{"templateID":'],
      ['[0]', '['.repeat(10_000)],
    ];
    for (const [field, body] of wrong)
      for (const path of ['/sandboxes', '/v2/sandboxes']) {
        const told = await ask(path, { body });
        expect([told.status, told.body['code']], JSON.stringify(told.body)).to.deep.equal([
          400, 400,
        ]);
        expect(Object.keys(told.body)).to.deep.equal(['code', 'message']);
        expect(told.body['message']).to.contain(field);
      }
    for (const [path, body] of [
      ['timeout', {}],
      ['timeout', { timeout: '7' }],
      ['connect', { timeout: -7 }],
      ['pause', { memory: 7 }],
    ] as const) {
      const { sandboxID } = await created();
      expect((await ask(`/sandboxes/${sandboxID}/${path}`, { body })).status).to.equal(400);
      await end(sandboxID);
    }
    expect((await ask('/v2/sandboxes?limit=0')).status).to.equal(400);
    expect((await ask('/v2/sandboxes?nextToken=x')).status).to.equal(400);
    expect((await ask('/v2/sandboxes?metadata=%2525ff')).status).to.equal(400);
    expect((await ask('/v2/sandboxes?state=gone')).status).to.equal(400);
    for (const pairs of ['__proto__=x', 'a=1&__proto__=x', 'a=1&a=2']) {
      const told = await ask(`/v2/sandboxes?metadata=${encodeURIComponent(pairs)}`);
      expect([told.status, told.body['message']], pairs).to.deep.equal([
        400,
        'metadata: must be pairs of metadata, each key once',
      ]);
    }
  });

  it('claims no sandbox with a network for a client that requests none', async () => {
    const { operations } = api;
    const [pool] = [...operations.pools.values()];
    if (!pool) throw new Error('there is no pool');
    const withNetwork = (network: 'host' | 'none') =>
      operations.supervisor.pools.change(pool.uid, (record) => ({
        ...record,
        definition: { ...record.definition, network },
      }));
    const closes = [
      ['allow_internet_access', { allow_internet_access: false }],
      ['network.denyOut', { network: { denyOut: ['0.0.0.0/0'] } }],
    ] as const;
    for (const [, more] of closes) await end((await created(more)).sandboxID);

    await withNetwork('host');
    for (const [field, more] of closes) {
      const { status, body } = await ask('/sandboxes', { body: { templateID: 'base', ...more } });
      expect([status, body['message']]).to.deep.equal([
        400,
        `${field}: the pool's sandboxes use their host's network (network: host), which cannot be ` +
          'disabled for a single sandbox; name a pool with network: none',
      ]);
    }
    await end((await created({ allow_internet_access: true, network: {} })).sandboxID);
    await withNetwork('none');
    const { status, body } = await ask('/sandboxes', {
      body: { templateID: 'base', allow_internet_access: 'yes' },
    });
    expect([status, body['message']]).to.deep.equal([
      400,
      'allow_internet_access: must be true or false',
    ]);
  });

  it('accepts the network settings already in effect, and refuses others with those', async () => {
    const same = { allowPublicTraffic: false, allowOut: [], egressProxy: null };
    await end((await created({ network: same })).sandboxID);
    const open = { network: { allowPublicTraffic: true } };
    const { body } = await ask('/v2/sandboxes', { body: { templateID: 'base', ...open } });
    expect(body['message']).to.match(/^network.allowPublicTraffic: must be false.*openPorts: off/);

    const opened = await aCompatibleApi({ terms: { openPorts: true } });
    try {
      for (const [allowPublicTraffic, expected] of [
        [true, 201],
        [false, 400],
      ] as const) {
        const { status } = await ask(`${opened.url}/v2/sandboxes`, {
          key: opened.keys.tenant,
          body: { templateID: 'base', network: { allowPublicTraffic } },
        });
        expect(status).to.equal(expected);
      }
    } finally {
      await opened.stop();
    }
  });

  it('ends a sandbox that it cannot pause, if the operator allows it', async () => {
    const onTimeout = async (
      withoutPause: 'refuse' | 'end',
      pauses: boolean,
    ): Promise<string | undefined> => {
      const operations = anEngine();
      operations.driver.description = { ...operations.driver.description, pauses };
      const other = await aCompatibleApi({ operations, terms: { withoutPause } });
      try {
        const at = { key: other.keys.tenant };
        const body = { templateID: 'base', autoPause: true };
        const made = await ask(`${other.url}/v2/sandboxes`, { ...at, body });
        if (made.status !== 201) return `${made.status}`;
        const shown = await ask(`${other.url}/sandboxes/${String(made.body['sandboxID'])}`, at);
        return (shown.body['lifecycle'] as { onTimeout: string }).onTimeout;
      } finally {
        await other.stop();
      }
    };

    expect(await onTimeout('end', false)).to.equal('kill');
    expect(await onTimeout('end', true)).to.equal('pause');
    expect(await onTimeout('refuse', false)).to.equal('501');
  });

  it('closes the connection of an endless body', async () => {
    for (const path of ['/v2/sandboxes', '/sandboxes/none/timeout']) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const asked = request(
          new URL(path, api.url),
          {
            method: 'POST',
            headers: { 'X-API-KEY': api.keys.tenant, 'Content-Type': 'application/json' },
          },
          (answer) => {
            resolve(answer.statusCode);
            asked.destroy();
          },
        );
        asked.on('error', reject);
        const more = (): void => {
          while (asked.write(' '.repeat(65_536)));
        };
        asked.on('drain', more);
        more();
      });
      expect(status, path).to.be.oneOf([404, 413]);
    }
  });

  it('accepts a template name with the cluster, and refuses an unknown one', async () => {
    await end((await created({ templateID: 'local::default' })).sandboxID);

    const other = await ask('/sandboxes', { body: { templateID: 'other::default' } });
    const none = await ask('/sandboxes', { body: { templateID: 'none' } });

    expect([other.status, none.status]).to.deep.equal([404, 404]);
    expect(none.body['message']).to.equal(
      'there is no pool "none"; create it: sandpool pools create none --template default',
    );
    const interpreter = await ask('/sandboxes', { body: { templateID: 'code-interpreter-v1' } });
    expect(interpreter.body['message']).to.equal(
      'there is no pool "code-interpreter-v1", and no template; an admin creates the template: ' +
        'sandpool templates create -f config/templates/code-interpreter-v1.json --admin; ' +
        'then create it: sandpool pools create code-interpreter-v1 --template code-interpreter-v1',
    );
  });

  it('has a template for the name of each pool, and no others', async () => {
    const found = async (name: string, key = api.keys.tenant): Promise<number> =>
      (await ask(`/templates/aliases/${name}`, { key })).status;

    for (const name of ['base', 'default', 'local::default', 'local%3A%3Adefault'])
      expect(await found(name), name).to.equal(200);
    for (const name of ['none', 'other::default', 'default%3Av1', 'team%2Fdefault', 'team/default'])
      expect(await found(name), name).to.equal(404);
    expect(await found('default', api.keys.stranger)).to.equal(404);
    expect(await found('default', '')).to.equal(401);
  });

  it('requires a key in its own header', async () => {
    const none = await ask('/v2/sandboxes', { key: '' });
    const wrong = await ask('/v2/sandboxes', { key: 'e2b_00' });
    const another = await ask('/v2/sandboxes', {
      key: '',
      headers: { 'SERVICE-API-KEY': api.keys.tenant },
    });

    expect(none).to.deep.include({
      status: 401,
      body: { code: 401, message: 'an API key is required: the header X-API-KEY' },
    });
    expect([wrong.status, another.status]).to.deep.equal([401, 401]);
  });

  it('delays an address that sends wrong keys, and no others', async () => {
    const own = await aCompatibleApi({ trustedProxies: ['127.0.0.1'] });
    try {
      const ask = async (address: string, key = 'e2b_00'): Promise<readonly unknown[]> => {
        const answer = await fetch(`${own.url}/v2/sandboxes`, {
          headers: { 'X-API-KEY': key, 'X-Forwarded-For': address },
        });
        const { code } = (await answer.json()) as { readonly code?: number };
        return [answer.status, code, answer.headers.get('retry-after')];
      };
      for (let sent = 0; sent < 20; sent += 1)
        expect(await ask('192.0.2.1')).to.deep.equal([401, 401, null]);

      expect(await ask('192.0.2.1')).to.deep.equal([429, 429, '60']);
      expect(await ask('192.0.2.1', toCompatibleForm(own.keys.tenant))).to.have.property('0', 200);
      expect(await ask('192.0.2.2')).to.have.property('0', 401);
    } finally {
      await own.stop();
    }
  });

  it('returns 501 for unsupported features and 404 for unknown paths', async () => {
    const { sandboxID } = await created();
    for (const [method, path] of [
      ['POST', `/sandboxes/${sandboxID}/fork`],
      ['POST', `/sandboxes/${sandboxID}/snapshots`],
      ['PUT', `/sandboxes/${sandboxID}/network`],
      ['GET', '/snapshots'],
      ['POST', '/v3/templates'],
      ['GET', '/volumes'],
    ] as const) {
      const { status, body } = await ask(path, { method });
      expect([path, status, body['code']]).to.deep.equal([path, 501, 501]);
    }
    expect((await ask(`/sandboxes/${sandboxID}/metrics?start=1&end=2`)).body).to.deep.equal([]);
    expect((await ask('/nowhere')).status).to.equal(404);
    expect((await ask(`/sandboxes/${sandboxID}/pause`, { body: { memory: false } })).status)
      .to // not 409
      .equal(501);
    await end(sandboxID);
  });

  it('returns a retry time if a pool is empty', async () => {
    const all = await Promise.all([created(), created(), created(), created()]);

    const { status, headers, body } = await ask('/v2/sandboxes', { body: { templateID: 'base' } });

    expect([status, body['code']]).to.deep.equal([429, 429]);
    expect(headers['retry-after']).to.match(/^[1-9]\d*$/);
    await end(...all.map(({ sandboxID }) => sandboxID));
  });

  it('gives back a sandbox whose client disconnected during the claim', async () => {
    const { operations, keys } = api;
    const before = operations.sandboxes.size;
    const left = new AbortController();
    const create = createSandbox(
      {
        operations: {
          ...operations,
          claimSandbox: async (...call) => {
            const view = await operations.claimSandbox(...call);
            left.abort(new Error('the client left'));
            return view;
          },
        },
        terms: {
          clusterId: 'local',
          templates: new Map(),
          waitMs: 0,
          images: [],
          imageWaitMs: 0,
          openPorts: false,
          withoutPause: 'refuse',
        },
      },
      operations.authenticate(keys.tenant),
      {
        body: { templateID: 'default' },
        lifetimeSeconds: 9,
        more: {},
        signal: left.signal,
      },
    );

    expect((await rejection(create)).message).to.equal('the client left');
    const running = [...operations.sandboxes.values()].filter(({ status }) => status === 'Running');
    expect(running).to.have.length(0);
    expect(operations.sandboxes.size).to.equal(before + 1);
  });

  it('returns 409 only for a pause of a paused sandbox', async () => {
    const { sandboxID } = await created();
    const pause = (): Promise<Told> => ask(`/sandboxes/${sandboxID}/pause`, { body: {} });
    const mend = failing(api.operations, new EffectIsOver(), 'setSandboxState');

    expect((await pause()).status).to.equal(412);
    mend();
    expect((await pause()).status).to.equal(204);
    const { status, body } = await pause();
    expect([status, body['code'], body['message']]).to.deep.equal([
      409,
      409,
      'the sandbox is paused already',
    ]);
    await end(sandboxID);
  });

  it('creates one sandbox for a request repeated with its key', async () => {
    const twice = [1, 2].map(async () =>
      ask('/v2/sandboxes', {
        body: { templateID: 'base' },
        headers: { 'Idempotency-Key': 'one-and-the-same' },
      }),
    );

    const [first, second] = [await twice[0], await twice[1]];

    const good = [first, second].filter((told) => told?.status === 201);
    expect(good).to.not.have.length(0);
    expect(new Set(good.map((told) => told?.body['sandboxID'])).size).to.equal(1);
    await end(String(good[0]?.body['sandboxID']));
  });

  describe('with a sandbox', () => {
    let one: Readonly<Record<string, string>>;
    let other: Readonly<Record<string, string>>;
    let web: Server;
    let port: string;
    before(async () => {
      [one, other] = [await created(), await created()];
      web = createServer((asked, answer) => {
        answer.end(JSON.stringify({ headers: asked.headers, url: asked.url }));
      }).listen(0, '127.0.0.1');
      await once(web, 'listening');
      port = String((web.address() as AddressInfo).port);
    });
    after(async () => {
      web.close();
      await end(one['sandboxID'], other['sandboxID']);
    });

    const health = async (headers: Ask['headers'] = {}): Promise<number> =>
      (await ask('/health', { key: '', headers })).status;

    it("accepts only that sandbox's own token", async () => {
      const [id = '', token = ''] = [one['sandboxID'], one['envdAccessToken']];
      const changed = token.replace(/.$/, (last) => (last === '0' ? '1' : '0'));

      expect(await health({ 'E2b-Sandbox-Id': id, 'X-Access-Token': token })).to.equal(204);
      expect(await health({ 'X-Access-Token': token })).to.equal(204);
      expect(await health({ Host: `49983-${id}.sandbox.test`, 'X-Access-Token': token })).to.equal(
        204,
      );
      for (const given of [
        undefined,
        changed,
        other['envdAccessToken'] ?? '',
        one['trafficAccessToken'] ?? '',
        api.keys.tenant,
        `${token}0`,
        '',
      ])
        expect(
          await health({
            'E2b-Sandbox-Id': id,
            ...(given === undefined ? {} : { 'X-Access-Token': given }),
          }),
          given,
        ).to.equal(401);
    });

    it("shares the tenant's turns of the event loop with its other requests", async () => {
      const { turns } = api;
      const take = turns.take.bind(turns);
      const tenants: string[] = [];
      turns.take = (tenant) => {
        tenants.push(tenant);
        return Promise.reject(tooMuchWaits());
      };
      try {
        const token = { 'X-Access-Token': one['envdAccessToken'] ?? '' };
        expect(await health(token)).to.equal(429);
        expect((await ask('/v2/sandboxes')).status).to.equal(429);
      } finally {
        turns.take = take;
      }
      expect(tenants).to.have.lengthOf(2);
      expect(new Set(tenants)).to.have.lengthOf(1);
    });

    it('ignores keys next to a token', async () => {
      const token = { 'X-Access-Token': one['envdAccessToken'] ?? '' };
      for (const key of ['e2b_00', 'e2b_0d0a', 'spk_wrong', api.keys.stranger])
        for (const path of ['/health', '/process.Process/List']) {
          const isCall = path !== '/health';
          const told = await ask(path, { key, headers: token, body: isCall ? {} : undefined });
          expect(told.status, `${key} ${path}`).to.equal(isCall ? 200 : 204);
        }
    });

    it('refuses an invalid address, and two addresses', async () => {
      const [id = '', token = ''] = [one['sandboxID'], one['envdAccessToken']];
      const twice = `49983-${other['sandboxID']}.sandbox.test`;
      const addresses: readonly Readonly<Record<string, string | string[]>>[] = [
        { 'E2b-Sandbox-Id': id, Host: twice },
        { 'E2b-Sandbox-Id': [id, id] },
        { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': '0' },
        { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': '65536' },
        { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': '-1' },
      ];
      for (const headers of addresses)
        expect(await health({ ...headers, 'X-Access-Token': token })).to.equal(400);
      expect((await ask('/files?path=a')).status).to.equal(400);
      // A label below another says nothing: the first one alone is the address.
      for (const [first, second, status] of [
        [id, other['sandboxID'], 204],
        [other['sandboxID'], id, 401],
      ] as const)
        expect(
          await health({ Host: `49983-${first}.49983-${second}.test`, 'X-Access-Token': token }),
        ).to.equal(status);
      for (const host of [`49983-${id},49983-${other['sandboxID']}.test`, `49983-${id}`])
        expect(await health({ Host: host })).to.be.oneOf([400, 401, 404]);
    });

    it('forwards to its other ports with the traffic token, and hides tokens from the sandbox', async () => {
      const at = { 'E2b-Sandbox-Id': one['sandboxID'] ?? '', 'E2b-Sandbox-Port': port };
      const good = await ask('/a?b=1', {
        headers: { ...at, 'E2B-Traffic-Access-Token': one['trafficAccessToken'] ?? '' },
      });
      const byHost = await ask('/', {
        headers: {
          Host: `${port}-${one['sandboxID']}.sandbox.test`,
          'X-Access-Token': one['envdAccessToken'] ?? '',
        },
      });

      expect(good.status).to.equal(200);
      expect(good.body['url']).to.equal('/a?b=1');
      expect(JSON.stringify([good.body, byHost.body])).to.not.match(/sbt_|spk_|e2b-/);
      expect(byHost.status).to.equal(200);
      expect((await ask('/', { headers: at })).status).to.equal(401);
    });

    it('returns 502 if the sandbox is gone, and only then', async () => {
      const gone = await created();
      await end(gone['sandboxID']);

      expect(await health({ 'X-Access-Token': gone['envdAccessToken'] ?? '' })).to.equal(502);
    });
  });
});
