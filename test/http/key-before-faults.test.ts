import { expect } from 'chai';
import { routesOf } from '../../src/http/server/app.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { aServer, type TestServer } from './a-server.ts';

/** Whoever has no key learns of no other fault: 401 comes before 400, 404, 413 and 415. */
describe('a request without a key', () => {
  let server: TestServer;

  before(async () => {
    server = await aServer();
  });
  after(() => server.stop());

  const expectNoKey = async (
    method: string,
    path: string,
    faulty: Parameters<TestServer['anyone']['send']>[2] = {},
  ): Promise<void> => {
    const { status, json } = await server.anyone.send(method, path, faulty);
    expect([status, json.errorCode], `${method} ${path}`).to.deep.equal([401, 'API_KEY_REQUIRED']);
  };

  for (const { method, path, access } of routesOf(anEngine())) {
    if (access === 'open') continue;
    it(`is refused for that before any other fault: ${method} ${path}`, async () => {
      const odd = path.replaceAll(/\{\w+\}/g, 'Not%20a%20name');
      await expectNoKey(method, `${odd}?limit=-1&limit=x&phase=&namespace=`);
      await expectNoKey(method, `/v1${odd}`);
      if (method === 'GET' || method === 'DELETE') return;
      const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': '' };
      await expectNoKey(method, odd, { raw: '{"name":', headers });
      await expectNoKey(method, odd, { raw: '<x/>', headers: { 'Content-Type': 'text/xml' } });
    });
  }

  it("is refused for that even if a pool's name contains an image", async () => {
    for (const path of ['/sandboxpools/shells//debian', '/v1/sandboxpools/local::shells//debian'])
      await expectNoKey('GET', path);
  });
});
