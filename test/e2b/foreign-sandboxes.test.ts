import { expect } from 'chai';
import { controlRoutes, type ControlDeps } from '../../src/e2b/control/routes.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';

interface Told {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What each operation needs beside the id. */
const BODIES: Readonly<Record<string, object>> = {
  'POST /sandboxes/{sandboxId}/timeout': { timeout: 60 },
  'POST /sandboxes/{sandboxId}/pause': {},
  'POST /sandboxes/{sandboxId}/connect': { timeout: 60 },
  'POST /v2/sandboxes/{sandboxId}/connect': { timeout: 60 },
};

describe("another tenant's sandbox, at the compatible API", () => {
  let api: CompatibleApi;
  let id: string;
  let none: string;
  let own: Readonly<Record<string, string>>;
  before(async () => {
    api = await aCompatibleApi();
    ({ sandboxID: id = '' } = await created(api.keys.tenant));
    none = id.replace(/.{12}$/, '0123456789ab');
    const stranger = api.operations.authenticate(api.keys.stranger);
    await api.operations.createPool(stranger, {
      ...{ name: 'of-the-stranger', replicas: 1, labels: {}, annotations: {} },
      source: { templateName: 'default' },
    });
    own = await created(api.keys.stranger, 'of-the-stranger');
  });
  after(() => api.stop());

  const ask = async (path: string, init: RequestInit): Promise<Told> => {
    const answer = await fetch(`${api.url}${path}`, init);
    const { date: _date, 'x-request-id': _id, ...headers } = Object.fromEntries(answer.headers);
    return { status: answer.status, body: await answer.text(), headers };
  };
  const created = async (key: string, templateID = 'base') => {
    const { status, body } = await ask('/v2/sandboxes', {
      method: 'POST',
      headers: { 'X-API-KEY': key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ templateID, metadata: { of: 'the owner' } }),
    });
    expect(status, body).to.equal(201);
    return JSON.parse(body) as Readonly<Record<string, string>>;
  };

  for (const { method, path } of controlRoutes({} as ControlDeps).filter((row) =>
    row.path.includes('{sandboxId}'),
  ))
    it(`is to ${method} ${path} what there is not`, async () => {
      const body = BODIES[`${method} ${path}`];
      const asked = (sandboxId: string): Promise<Told> =>
        ask(path.replace('{sandboxId}', sandboxId), {
          method,
          headers: { 'X-API-KEY': api.keys.stranger, 'Content-Type': 'application/json' },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
      const [theirs, nobodys] = [await asked(id), await asked(none)];

      expect(theirs.status, theirs.body).to.equal(404);
      expect(theirs).to.deep.equal(nobodys);
    });

  it('is not let into by any token but its own, as though it were not there', async () => {
    const tokens = [own['envdAccessToken'], own['trafficAccessToken'], api.keys.tenant, undefined];
    for (const path of ['/health', '/files?path=/etc/passwd', '/process.Process/List'])
      for (const port of ['49983', '3000'])
        for (const token of tokens) {
          const headers = {
            'E2b-Sandbox-Port': port,
            'Content-Type': 'application/json',
            ...(token === undefined
              ? {}
              : { 'X-Access-Token': token, 'E2B-Traffic-Access-Token': token }),
          };
          const method = path.startsWith('/process') ? 'POST' : 'GET';
          const asked = (sandboxId: string): Promise<Told> =>
            ask(path, { method, headers: { ...headers, 'E2b-Sandbox-Id': sandboxId } });
          const [theirs, nobodys] = [await asked(id), await asked(none)];

          expect(theirs.status, `${path} ${port} ${theirs.body}`).to.equal(401);
          expect(theirs).to.deep.equal(nobodys);
        }
  });

  it('shows in no list of anybody else', async () => {
    const headers = { 'X-API-KEY': api.keys.stranger };
    for (const query of ['', '?metadata=of%3Dthe%2520owner', '?template=base', '?state=running']) {
      const { status, body } = await ask(`/v2/sandboxes${query}`, { headers });
      expect([status, body.includes(id)], query).to.deep.equal([200, false]);
    }
  });
});
